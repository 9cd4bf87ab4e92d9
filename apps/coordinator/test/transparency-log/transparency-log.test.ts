import {
  decodeEntryBundle,
  type E2eKeysetLog,
  encodeLogEntry,
  formatNoteKey,
  fromBase64,
  keysetLeafBytes,
  keysetLogEntry,
  type LogEntry,
  type LogPolicy,
  LogVerifier,
  openCheckpoint,
  parseLogEntry,
  parseNoteKey,
  providerLogEntry,
  subtreesFromTiles,
  tilePath,
  toHex,
  treeRoot,
} from '@inference/protocol';
import { nodeLogCrypto, sha256 } from '@inference/protocol/crypto';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MAX_ENTRIES_PER_HOUR } from '../../src/database/log-repository.js';
import type { Database } from '../../src/database/tables.js';
import { createLog } from '../../src/log.js';
import { createHttpServer } from '../../src/routes/plugins/server.js';
import { logRoutes } from '../../src/routes/transparency-log/log-routes.js';
import { TransparencyLog } from '../../src/transparency-log/transparency-log.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';
import { type FakeWitness, startWitness } from './fake-witness.js';

const ORIGIN = 'gateway.example/e2e/log';

const provider = (index: number): LogEntry => ({
  v: 1,
  kind: 'provider',
  provider_id: index.toString(16).padStart(32, '0') as Extract<LogEntry, { kind: 'provider' }>['provider_id'],
  public_key_sha256: index.toString(16).padStart(64, '0'),
});

const keyset = (epoch: number) => ({ v: 1 as const, epoch, issued_at: 1_700_000_000_000 + epoch, providers: [] });

describeDatabases('transparency log', (fresh) => {
  let stored: TestDatabase;
  const connections: Database[] = [];
  const witnesses: FakeWitness[] = [];
  const failures: unknown[] = [];

  beforeEach(async () => {
    stored = await fresh();
  });
  afterEach(async () => {
    vi.useRealTimers();
    await Promise.all(connections.splice(0).map((database) => database.destroy()));
    await Promise.all(witnesses.splice(0).map((witness) => witness.close()));
    failures.length = 0;
    await stored.remove();
  });

  /** A coordinator's log, on its own database connection. */
  async function openLog(options: { origin?: string; quorum?: number } = {}): Promise<TransparencyLog> {
    const database = await stored.open();
    connections.push(database);
    const { origin = ORIGIN, quorum = 0 } = options;
    const configured = witnesses.map(({ witness }) => witness);
    return TransparencyLog.open({ database, origin, quorum, witnesses: configured, onWitnessFailure: (error) => failures.push(error) });
  }

  /** Starts two witnesses, which the next log uses. */
  async function startWitnesses(): Promise<readonly [FakeWitness, FakeWitness]> {
    let key = '';
    const known = async (): Promise<void> => {
      key = (await openLog()).verifierKey;
    };
    await known();
    const pair = [await startWitness('one.example', 1, () => key), await startWitness('two.example', 2, () => key)] as const;
    witnesses.push(...pair);
    return pair;
  }

  function verifierOf(log: TransparencyLog, policy: Partial<LogPolicy> = {}): LogVerifier {
    return new LogVerifier({
      crypto: nodeLogCrypto,
      policy: { key: log.verifierKey, witnesses: [], minCosignatures: 0, maxAgeMs: 60_000, ...policy },
      readTile: async (tile) => (await log.tile(tile)) as Uint8Array,
    });
  }

  const leafOf = (entry: LogEntry, proof: E2eKeysetLog) => ({
    checkpoint: proof.checkpoint,
    entry: encodeLogEntry(entry),
    leafIndex: proof.leaf_index,
    inclusionProof: proof.inclusion_proof.map(fromBase64),
  });

  const sizeOf = async (log: TransparencyLog): Promise<number> =>
    openCheckpoint(nodeLogCrypto, await log.checkpoint(), parseNoteKey(sha256, log.verifierKey), []).size;

  it('publishes keysets with proofs that a client verifies, and logs each once', async () => {
    const log = await openLog();
    const bytes = keysetLeafBytes(keyset(1));
    const first = await log.publish(bytes);
    if (first === null) throw new Error('not published');
    const before = await verifierOf(log).verify(leafOf(keysetLogEntry(sha256, 1, bytes), first), null, Date.now());
    if (!before.ok) throw new Error(before.reason);
    for (let index = 0; index < 20; index++) await log.append(provider(index));
    const again = await log.publish(bytes);
    if (again === null) throw new Error('not published');
    expect(again.leaf_index).toBe(first.leaf_index);
    const after = await verifierOf(log).verify(leafOf(keysetLogEntry(sha256, 1, bytes), again), before.stored, Date.now());
    expect(after).toMatchObject({ ok: true, stored: { origin: ORIGIN, size: 21 } });
    expect(await verifierOf(log).verify(leafOf(keysetLogEntry(sha256, 2, bytes), again), null, Date.now())).toMatchObject({
      code: 'split_view',
    });
    await expect(log.publish(new TextEncoder().encode('{}'))).rejects.toThrow('epoch');
  });

  it('gives concurrent coordinators one log, and each entry one leaf', async () => {
    const logs = [await openLog(), await openLog({ origin: 'other.example/e2e/log' })] as const;
    expect(logs[1].verifierKey).toBe(logs[0].verifierKey);
    const indexes = await Promise.all(
      Array.from({ length: 60 }, (_, at) => (logs[at % 2] as TransparencyLog).append(provider(Math.floor(at / 3)))),
    );
    expect([...new Set(indexes)].sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 20 }, (_, index) => index));
    for (let at = 0; at < 60; at += 3) expect(new Set(indexes.slice(at, at + 3)).size).toBe(1);
    expect(await sizeOf(logs[0])).toBe(20);
    const verified = await verifierOf(logs[0]).verifyCheckpoint(await logs[0].checkpoint(), null, Date.now());
    if (!verified.ok) throw new Error(verified.reason);
    const other = await verifierOf(logs[1]).verifyCheckpoint(await logs[1].checkpoint(), verified.stored, Date.now());
    expect(other).toMatchObject({ ok: true, stored: { size: 20 } });
  });

  it('continues after a restart, and publishes entries that a crash left unpublished', async () => {
    const before = await openLog();
    for (let index = 0; index < 5; index++) await before.append(provider(index));
    const verified = await verifierOf(before).verifyCheckpoint(await before.checkpoint(), null, Date.now());
    if (!verified.ok) throw new Error(verified.reason);
    const [database] = connections;
    // State after a crash between append and publication.
    await before.append(provider(5));
    await database?.updateTable('log_heads').set({ published_size: 5, published_root: verified.stored.root }).execute();
    const after = await openLog();
    expect(await sizeOf(after)).toBe(5);
    expect(await after.inclusionOf(5)).toBeNull();
    await after.refresh();
    const verdict = await verifierOf(after).verifyCheckpoint(await after.checkpoint(), verified.stored, Date.now());
    expect(verdict).toMatchObject({ ok: true, stored: { size: 6 } });
  });

  it('is refused by clients after its database was rolled back', async () => {
    const log = await openLog();
    for (let index = 0; index < 3; index++) await log.append(provider(index));
    const verified = await verifierOf(log).verifyCheckpoint(await log.checkpoint(), null, Date.now());
    if (!verified.ok) throw new Error(verified.reason);
    const [database] = connections;
    for (const table of ['log_entries', 'log_nodes', 'log_heads'] as const) await database?.deleteFrom(table).execute();
    const restored = await openLog();
    for (let index = 0; index < 4; index++) await restored.append(provider(10 + index));
    const verdict = await verifierOf(restored).verifyCheckpoint(await restored.checkpoint(), verified.stored, Date.now());
    expect(verdict).toMatchObject({ ok: false, code: 'split_view' });
  });

  it("gives a provider's key one leaf, which the next keyset's checkpoint contains", async () => {
    const log = await openLog();
    const key = new Uint8Array(65).fill(4);
    expect([await log.providerIndex(key), await log.providerIndex(key), await log.append(providerLogEntry(sha256, key))]).toEqual([
      { index: 0, isCached: false },
      { index: 0, isCached: true },
      0,
    ]);
    const other = new Uint8Array(65).fill(5);
    expect(await log.providerIndex(other)).toEqual({ index: 1, isCached: false });
    expect(await log.publish(keysetLeafBytes(keyset(1)))).toMatchObject({ leaf_index: 2 });
    const proof = await log.inclusionOf(1);
    if (proof === null) throw new Error('not published');
    expect(await verifierOf(log).verify(leafOf(providerLogEntry(sha256, other), proof), null, Date.now())).toMatchObject({ ok: true });
  });

  it('bounds its growth per hour and kind', async () => {
    const log = await openLog();
    const release = (patch: number): LogEntry => ({
      v: 1,
      kind: 'release',
      platform: 'linux-x64',
      version: `1.0.${patch}`,
      sha256: '0'.repeat(64),
    });
    for (let patch = 0; patch < MAX_ENTRIES_PER_HOUR.release; patch++) expect(await log.append(release(patch))).toBe(patch);
    expect(await log.append(release(MAX_ENTRIES_PER_HOUR.release))).toBeNull();
    expect(await log.append(release(0))).toBe(0);
    expect(await log.append(provider(1))).toBe(MAX_ENTRIES_PER_HOUR.release);
  });

  it('publishes a checkpoint after the cosignatures of its quorum', async () => {
    const [one, two] = await startWitnesses();
    const log = await openLog({ quorum: 2 });
    const keys = witnesses.map(({ witness }) => formatNoteKey(sha256, witness.key));
    const policy = { witnesses: keys, minCosignatures: 2 };
    expect(await log.append(provider(0))).toBe(0);
    const verify = async () => verifierOf(log, policy).verifyCheckpoint(await log.checkpoint(), null, Date.now());
    expect(await verify()).toMatchObject({ ok: true, checkpoint: { size: 1 } });

    two.failing = 503;
    expect(await log.publish(keysetLeafBytes(keyset(1)))).toBeNull();
    expect(failures).toHaveLength(1);
    expect(String(failures[0])).toContain('witness two.example: answered 503');
    expect(await verify(), 'the previous checkpoint stays').toMatchObject({ ok: true, checkpoint: { size: 1 } });

    two.failing = null;
    two.aheadMs = 75_000;
    expect(await log.publish(keysetLeafBytes(keyset(1)))).toBeNull();
    expect(String(failures[1])).toContain('witness two.example: dates its cosignature in the future');

    two.aheadMs = 0;
    expect(await log.publish(keysetLeafBytes(keyset(1)))).toMatchObject({ leaf_index: 1 });
    expect(await verify()).toMatchObject({ ok: true, checkpoint: { size: 2 } });
    expect([one.latest?.size, two.latest?.size]).toEqual([2, 2]);

    // If a witness does not answer, its older cosignature of the same tree is retained.
    two.failing = 503;
    await log.refresh();
    expect(await verify()).toMatchObject({ ok: true, checkpoint: { size: 2 } });

    // Another coordinator does not know yet which tree sizes the witnesses have cosigned.
    two.failing = null;
    const other = await openLog({ quorum: 2 });
    expect(await other.append(provider(1))).toBe(2);
    expect(await sizeOf(log)).toBe(3);
  });

  it('counts no stored cosignature that is dated in the future', async () => {
    const [, two] = await startWitnesses();
    const log = await openLog({ quorum: 2 });
    await log.append(provider(0));
    // The clock was ahead when this cosignature was accepted, and was then set back.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
    two.aheadMs = 45_000;
    await log.refresh();
    vi.useRealTimers();
    const cosignatures = async () => (await log.checkpoint()).split('\n').filter((line) => /^— (one|two)\.example /.test(line));
    const before = await cosignatures();
    expect(before).toHaveLength(2);
    two.failing = 503;
    await log.refresh();
    expect(await cosignatures(), 'no quorum').toEqual(before);
    const reconfigured = await openLog({ quorum: 1 });
    await reconfigured.refresh();
    const checkpoint = await reconfigured.checkpoint();
    expect(checkpoint).toContain('— one.example ');
    expect(checkpoint).not.toContain('— two.example ');
  });

  it('drops the cosignature of a witness that is no longer configured', async () => {
    const [, two] = await startWitnesses();
    const log = await openLog({ quorum: 2 });
    await log.append(provider(0));
    expect(await log.checkpoint()).toContain('— two.example ');
    witnesses.splice(witnesses.indexOf(two), 1);
    const reconfigured = await openLog({ quorum: 1 });
    await reconfigured.refresh();
    const checkpoint = await reconfigured.checkpoint();
    expect(checkpoint).toContain('— one.example ');
    expect(checkpoint).not.toContain('— two.example ');
    await two.close();
  });

  it('serves checkpoint, key, tiles and entries over HTTP', async () => {
    const log = await openLog();
    for (let index = 0; index < 260; index++) await log.append(provider(index));
    const limits = { maxRequestBytes: 1000, maxHeldBytes: 1000, isFunded: () => true };
    const server = await createHttpServer({
      ...limits,
      cors: false,
      now: () => 0,
      trustedProxies: [],
      log: createLog('silent', { write: () => {} }),
      isDraining: () => false,
      isRefusing: () => false,
    });
    await server.register(logRoutes, { transparencyLog: log });
    const get = (path: string) => server.inject(`/e2e/log/${path}`);

    const key = await get('key');
    expect(key.body).toBe(`${log.verifierKey}\n`);
    const checkpoint = await get('checkpoint');
    expect(checkpoint.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-cache',
      'access-control-allow-origin': '*',
    });
    const { size, root } = openCheckpoint(nodeLogCrypto, checkpoint.body, parseNoteKey(sha256, log.verifierKey), []);
    expect(size).toBe(260);
    const read = subtreesFromTiles(sha256, size, async (tile) => (await get(tilePath(tile))).rawPayload);
    expect(toHex(await treeRoot(sha256, read, size))).toBe(toHex(root));

    const full = await get('tile/0/000');
    expect(full.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'cache-control': 'public, max-age=31536000, immutable',
    });
    expect(full.rawPayload).toHaveLength(8192);
    const entries = [await get('tile/entries/000'), await get('tile/entries/001.p/4')].flatMap(({ rawPayload }) =>
      decodeEntryBundle(rawPayload),
    );
    expect(entries.map(parseLogEntry)).toEqual(Array.from({ length: 260 }, (_, index) => provider(index)));
    for (const path of ['tile/0/001', 'tile/0/001.p/5', 'tile/0/002.p/1', 'tile/1/000', 'tile/0/x', 'tile/entries/001', 'other']) {
      expect((await get(path)).statusCode, path).toBe(404);
    }
    await server.close();
  });
});
