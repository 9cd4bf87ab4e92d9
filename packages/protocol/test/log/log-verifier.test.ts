import { describe, expect, it } from 'vitest';
import { nodeLogCrypto, sha256 } from '../../src/crypto/index.js';
import {
  encodeLogEntry,
  keysetLogEntry,
  LogFormatError,
  type LogPolicy,
  type LogTree,
  LogVerifier,
  parseLogEntry,
  type StoredCheckpoint,
  treeRoot,
  utf8,
} from '../../src/index.js';
import { TestLog, TestSigner } from './log-fixture.js';

const NOW = 1_700_000_000_000;
const HOUR_MS = 3_600_000;

const entriesOf = (count: number, variant = 0): Uint8Array[] =>
  Array.from({ length: count }, (_, epoch) => encodeLogEntry(keysetLogEntry(sha256, epoch, Uint8Array.of(epoch, variant))));

const log = new TestLog(entriesOf(20));
/** Shares ten leaves with `log`. */
const fork = new TestLog([...entriesOf(10), ...entriesOf(30, 1).slice(10)]);
const witnesses = [new TestSigner('one.example', 11, 'cosignature'), new TestSigner('two.example', 12, 'cosignature')];

async function treeOf(source: TestLog, size: number): Promise<LogTree> {
  return { size, root: await treeRoot(sha256, source.subtree, size) };
}

function verifierOf(source: TestLog, policy: Partial<LogPolicy> = {}, readTile = source.readTile): LogVerifier {
  return new LogVerifier({
    crypto: nodeLogCrypto,
    policy: { key: log.signer.verifierKey, witnesses: [], minCosignatures: 0, maxAgeMs: HOUR_MS, ...policy },
    readTile,
  });
}

async function storedAt(size: number, timeMs: number): Promise<StoredCheckpoint> {
  const verdict = await verifierOf(log).verifyCheckpoint(log.checkpoint(size, timeMs), null, timeMs);
  if (!verdict.ok) throw new Error(verdict.reason);
  // Simulates a restart of the client.
  return JSON.parse(JSON.stringify(verdict.stored)) as StoredCheckpoint;
}

describe('LogVerifier', () => {
  it('accepts a leaf with its proof, and the grown log after it', async () => {
    const first = await verifierOf(log).verify(await log.leaf(3, 7, log.checkpoint(7, NOW)), null, NOW);
    if (!first.ok) throw new Error(first.reason);
    expect(first.stored).toMatchObject({ size: 7, signed_at: NOW });
    const second = await verifierOf(log).verify(await log.leaf(19, 20, log.checkpoint(20, NOW + 1000)), first.stored, NOW + 1000);
    expect(second).toMatchObject({ ok: true, stored: { size: 20, signed_at: NOW + 1000 } });
  });

  it('proves entries of a verified tree from its tiles, reading each tile once', async () => {
    let reads = 0;
    const verifier = verifierOf(log, {}, (tile) => {
      reads++;
      return log.readTile(tile);
    });
    const tree = await treeOf(log, 20);
    for (const index of [0, 9, 19]) expect(await verifier.includes(log.entries[index] as Uint8Array, index, tree)).toBe(true);
    expect(reads).toBe(1);
    expect(await verifier.includes(log.entries[0] as Uint8Array, 1, tree)).toBe(false);
    expect(await verifier.includes(fork.entries[15] as Uint8Array, 15, tree)).toBe(false);
    for (const index of [20, -1, 0.5, Number.NaN]) {
      expect(await verifier.includes(log.entries[0] as Uint8Array, index, tree), `outside the tree: ${index}`).toBe(false);
    }
    expect(await verifierOf(fork).includes(log.entries[0] as Uint8Array, 0, tree), 'tiles of another tree').toBe(false);
  });

  it('reads tiles that did not verify again', async () => {
    let isDamaged = true;
    const verifier = verifierOf(log, {}, async (tile) => {
      const bytes = await log.readTile(tile);
      return isDamaged ? bytes.slice(1) : bytes;
    });
    const tree = await treeOf(log, 20);
    expect(await verifier.includes(log.entries[3] as Uint8Array, 3, tree)).toBe(false);
    isDamaged = false;
    expect(await verifier.includes(log.entries[3] as Uint8Array, 3, tree)).toBe(true);
  });

  it('compares the checkpoint of another party, smaller, equal or larger', async () => {
    const tree = await treeOf(log, 12);
    const compare = (note: string, source = log) => verifierOf(source).compareCheckpoint(note, tree);
    for (const size of [0, 7, 12, 20]) expect(await compare(log.checkpoint(size, 0)), String(size)).toEqual({ ok: true });
    expect(await compare(fork.checkpoint(10, NOW)), 'before the fork').toEqual({ ok: true });
    for (const [size, source] of [
      [11, log],
      [12, log],
      [11, fork],
      [30, fork],
    ] as const) {
      expect(await compare(fork.checkpoint(size, NOW), source), String(size)).toMatchObject({ ok: false, code: 'split_view' });
    }
    expect(await compare(log.checkpoint(7, NOW).replace('\n7\n', '\n8\n'))).toMatchObject({ ok: false, code: 'split_view' });
    expect(await compare('no note')).toMatchObject({ ok: false, code: 'split_view' });
  });

  it('refuses an entry without a valid proof', async () => {
    const leaf = await log.leaf(3, 7, log.checkpoint(7, NOW));
    for (const changed of [
      { ...leaf, leafIndex: 4 },
      { ...leaf, entry: utf8('{}') },
      { ...leaf, inclusionProof: leaf.inclusionProof.slice(1) },
      { ...leaf, inclusionProof: leaf.inclusionProof.map((hash) => hash.slice(1)) },
      { ...leaf, checkpoint: fork.checkpoint(12, NOW) },
    ]) {
      expect(await verifierOf(log).verify(changed, null, NOW)).toMatchObject({ ok: false, code: 'split_view' });
    }
  });

  it('refuses an old checkpoint, and one from the future', async () => {
    const note = log.checkpoint(7, NOW);
    expect(await verifierOf(log).verifyCheckpoint(note, null, NOW + HOUR_MS)).toMatchObject({ ok: true });
    expect(await verifierOf(log).verifyCheckpoint(note, null, NOW + HOUR_MS + 121_000)).toMatchObject({ ok: false, code: 'stale' });
    expect(await verifierOf(log).verifyCheckpoint(note, null, NOW - 121_000)).toMatchObject({ ok: false, code: 'split_view' });
  });

  it('refuses a fork, at the same size and after growth', async () => {
    const stored = await storedAt(15, NOW);
    for (const size of [12, 15, 20, 30]) {
      const verdict = await verifierOf(fork).verifyCheckpoint(fork.checkpoint(size, NOW), stored, NOW);
      expect(verdict, `size ${size}`).toMatchObject({ ok: false, code: 'split_view' });
    }
  });

  it('refuses a log that shrank, and accepts an earlier view of it without forgetting the newer one', async () => {
    const stored = await storedAt(15, NOW);
    expect(await verifierOf(log).verifyCheckpoint(log.checkpoint(12, NOW + 1000), stored, NOW + 1000)).toMatchObject({
      ok: false,
      code: 'split_view',
      reason: 'the log is shorter than at an earlier time',
    });
    expect(await verifierOf(log).verifyCheckpoint(log.checkpoint(12, NOW - 1000), stored, NOW)).toMatchObject({ ok: true, stored });
  });

  it('refuses tiles that do not lead to the checkpoint', async () => {
    const stored = await storedAt(7, NOW);
    const short = new LogVerifier({
      crypto: nodeLogCrypto,
      policy: { key: log.signer.verifierKey, witnesses: [], minCosignatures: 0, maxAgeMs: HOUR_MS },
      readTile: async () => new Uint8Array(3),
    });
    expect(await short.verifyCheckpoint(log.checkpoint(20, NOW), stored, NOW)).toMatchObject({ ok: false, code: 'split_view' });
    expect(await verifierOf(fork).verifyCheckpoint(log.checkpoint(20, NOW), stored, NOW)).toMatchObject({ ok: false, code: 'split_view' });
  });

  it('requires its quorum of fresh cosignatures', async () => {
    const policy = { witnesses: witnesses.map(({ verifierKey }) => verifierKey), minCosignatures: 2 };
    const verify = (note: string) => verifierOf(log, policy).verifyCheckpoint(note, null, NOW);
    expect(await verify(log.checkpoint(7, NOW, witnesses))).toMatchObject({ ok: true });
    expect(await verify(log.checkpoint(7, NOW, witnesses.slice(1)))).toMatchObject({ ok: false, code: 'split_view' });
    expect(await verify(log.checkpoint(7, NOW, witnesses, NOW - 2 * HOUR_MS))).toMatchObject({ ok: false, code: 'stale' });
    expect(await verify(log.checkpoint(7, NOW, witnesses, NOW + 119_000)), 'clocks that differ').toMatchObject({ ok: true });
    expect(await verify(log.checkpoint(7, NOW, witnesses, NOW + 121_000))).toMatchObject({
      ok: false,
      code: 'split_view',
      reason: 'the cosignatures of witnesses are signed in the future',
    });
    const [one = ''] = policy.witnesses;
    expect(() => verifierOf(log, { witnesses: [one, one], minCosignatures: 2 })).toThrow(LogFormatError);
    expect(() => verifierOf(log, { ...policy, minCosignatures: 3 })).toThrow(RangeError);
  });
});

describe('log entries', () => {
  it('are canonical JSON of a known kind', () => {
    const entry = keysetLogEntry(sha256, 3, utf8('{}'));
    expect(parseLogEntry(encodeLogEntry(entry))).toEqual(entry);
    for (const text of [
      '',
      '{}',
      `${JSON.stringify({ ...entry, kind: 'other' })}`,
      JSON.stringify(entry, null, 1),
      JSON.stringify({ ...entry, more: 1 }),
    ]) {
      expect(() => parseLogEntry(utf8(text)), text).toThrow(LogFormatError);
    }
  });
});
