/** Each keyset epoch has one leaf in the transparency log, even if coordinators race or crash at any step of a publication. */
import { decodeEntryBundle, type E2eKeyset, keysetLeafBytes, keysetLogEntry, type LogEntry, parseLogEntry } from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { KeysetRepository } from '../../../src/database/keyset-repository.js';
import type { Database } from '../../../src/database/tables.js';
import { KEYSET_MAX_AGE_MS, KeysetPublisher } from '../../../src/routes/e2e/keyset-publisher.js';
import { TransparencyLog } from '../../../src/transparency-log/transparency-log.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';

const RACES = 12;

describeDatabases('keyset claims', (fresh) => {
  let stored: TestDatabase;
  let now = 1_700_000_000_000;
  const connections: Database[] = [];

  beforeEach(async () => {
    stored = await fresh();
  });
  afterEach(async () => {
    await Promise.all(connections.splice(0).map((database) => database.destroy()));
    await stored.remove();
  });

  interface Coordinator {
    readonly log: TransparencyLog;
    readonly repository: KeysetRepository;
    /** Steps that fail once, as if the process had crashed before them. */
    readonly failing: Set<'log' | 'publish'>;
    read(): Promise<E2eKeyset>;
  }

  /** Creates a coordinator with its own database connection. Its keyset content differs from that of all others. */
  async function coordinator(name: string): Promise<Coordinator> {
    const database = await stored.open();
    connections.push(database);
    const log = await TransparencyLog.open({ database, origin: 'log.example', witnesses: [], quorum: 0, onWitnessFailure: () => {} });
    const repository = new KeysetRepository(database);
    const failing = new Set<'log' | 'publish'>();
    const failOnce = (step: 'log' | 'publish'): void => {
      if (failing.delete(step)) throw new Error(`ended before ${step}`);
    };
    let reads = 0;
    const publisher = new KeysetPublisher({
      repository: {
        newest: () => repository.newest(),
        newestClaim: () => repository.newestClaim(),
        claim: (keyset) => repository.claim(keyset),
        publish: async (keyset) => {
          failOnce('publish');
          return repository.publish(keyset);
        },
      },
      providers: async () => ({ entries: [entry(`${name} ${++reads}`)], newestRegistrationAt: Number.NEGATIVE_INFINITY }),
      log: {
        publish: async (bytes) => {
          failOnce('log');
          return log.publish(bytes);
        },
      },
      now: () => now,
    });
    return { log, repository, failing, read: async () => JSON.parse((await publisher.current()).value.body) as E2eKeyset };
  }

  /** Keyset leaves of the log, in order. */
  async function leavesOf({ log }: Coordinator): Promise<Extract<LogEntry, { kind: 'keyset' }>[]> {
    const leaves: LogEntry[] = [];
    for (let width = 1; ; width++) {
      const bundle = await log.tile({ level: 'entries', index: 0, width });
      if (bundle === null) return leaves.filter((leaf) => leaf.kind === 'keyset');
      leaves.push(...decodeEntryBundle(bundle).slice(-1).map(parseLogEntry));
    }
  }

  async function requireOneLeafEach(coordinator: Coordinator, served: readonly E2eKeyset[]): Promise<void> {
    const leaves = await leavesOf(coordinator);
    expect(new Set(leaves.map(({ epoch }) => epoch)).size).toBe(leaves.length);
    for (const keyset of served) {
      expect(leaves[keyset.log?.leaf_index ?? -1]).toEqual(keysetLogEntry(sha256, keyset.epoch, keysetLeafBytes(keyset)));
    }
  }

  it('gives racing coordinators one leaf and one keyset for each epoch', async () => {
    const [a, b] = [await coordinator('a'), await coordinator('b')];
    const served: E2eKeyset[] = [];
    for (let race = 1; race <= RACES; race++) {
      served.push(...(await Promise.all([a.read(), b.read()])));
      const newest = JSON.parse((await a.repository.newest())?.body ?? 'null') as E2eKeyset;
      expect(newest.epoch).toBe(race);
      now += KEYSET_MAX_AGE_MS;
    }
    expect(await leavesOf(a)).toHaveLength(RACES);
    await requireOneLeafEach(a, served);
    for (const keyset of served) {
      const others = served.filter(({ epoch }) => epoch === keyset.epoch);
      for (const other of others) expect(keysetLeafBytes(other)).toEqual(keysetLeafBytes(keyset));
    }
  });

  it.each(['log', 'publish'] as const)('completes the claim of a coordinator that ended before it could %s', async (step) => {
    const [a, b] = [await coordinator('a'), await coordinator('b')];
    await a.read();
    now += KEYSET_MAX_AGE_MS;
    a.failing.add(step);
    await expect(a.read()).rejects.toThrow(`ended before ${step}`);
    const claim = await b.repository.newestClaim();
    const healed = await b.read();
    expect(healed.epoch).toBe(2);
    const leaves = await leavesOf(b);
    expect(leaves.find(({ epoch }) => epoch === 2)).toEqual(
      keysetLogEntry(sha256, 2, keysetLeafBytes(JSON.parse(claim?.body ?? 'null') as E2eKeyset)),
    );
    now += KEYSET_MAX_AGE_MS;
    await requireOneLeafEach(a, [healed, await a.read(), await b.read()]);
  });

  it('replaces a claim that nobody completed for long, under a new epoch', async () => {
    const [a, b] = [await coordinator('a'), await coordinator('b')];
    a.failing.add('log');
    await expect(a.read()).rejects.toThrow('ended before log');
    now += 3_600_000;
    const served = await b.read();
    expect(served).toMatchObject({ epoch: 2, issued_at: now });
    await requireOneLeafEach(b, [served]);
  });

  it('refuses to claim an epoch whose claim was deleted after its publication', async () => {
    const { repository } = await coordinator('a');
    const keyset = (epoch: number) => ({ epoch, body: `{"epoch":${epoch}}`, issuedAt: now });
    for (let epoch = 1; epoch <= 20; epoch++) {
      expect(await repository.claim(keyset(epoch))).toEqual(keyset(epoch));
      expect(await repository.publish(keyset(epoch))).toBe(true);
    }
    expect(await repository.claim({ ...keyset(1), body: '{}' })).toBeNull();
    expect(await repository.newestClaim()).toEqual(keyset(20));
  });
});

function entry(model: string): E2eKeyset['providers'][number] {
  return {
    provider_id: 'a'.repeat(32),
    key_id: 'b'.repeat(16),
    x25519: '',
    not_after: 1,
    models: [model],
    weight: 1,
    record_sha256: 'c'.repeat(64),
  } as E2eKeyset['providers'][number];
}
