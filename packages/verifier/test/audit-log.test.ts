import {
  encodeEntryBundle,
  encodeLogEntry,
  keysetLogEntry,
  type LogEntry,
  leafHash,
  nodeHash,
  TILE_WIDTH,
  type TileId,
  tilePath,
  treeRoot,
} from '@inference/protocol';
import { ed25519KeyPairFrom, nodeLogCrypto, sha256 } from '@inference/protocol/crypto';
import { describe, expect, it } from 'vitest';
import { type AuditedLog, auditLog, nobleLogCrypto } from '../src/index.js';

const release = (patch: number): LogEntry => ({
  v: 1,
  kind: 'release',
  platform: 'linux-x64',
  version: `1.0.${patch}`,
  sha256: '0'.repeat(64),
});
const keyset = (epoch: number): LogEntry => keysetLogEntry(sha256, epoch, Uint8Array.of(epoch));

/** Cache: hashes of complete subtrees, by the list of leaf hashes. */
const subtreeHashes = new WeakMap<readonly Uint8Array[], Map<string, Uint8Array>>();

/** Serves the tiles of these entries, with changes by path. `leaves`: leaf hashes of these and possibly of later entries. */
function servedLog(
  entries: readonly Uint8Array[],
  changes: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {},
  leaves: readonly Uint8Array[] = entries.map((entry) => leafHash(sha256, entry)),
) {
  const known = subtreeHashes.get(leaves) ?? new Map<string, Uint8Array>();
  subtreeHashes.set(leaves, known);
  const hashOf = (level: number, index: number): Uint8Array => {
    if (level === 0) return leaves[index] as Uint8Array;
    const hash = known.get(`${level} ${index}`) ?? nodeHash(sha256, hashOf(level - 1, 2 * index), hashOf(level - 1, 2 * index + 1));
    known.set(`${level} ${index}`, hash);
    return hash;
  };
  const subtree = async (level: number, index: number): Promise<Uint8Array> => hashOf(level, index);
  const readTile = async (tile: TileId): Promise<Uint8Array> => {
    const { level, index, width } = tile;
    const places = Array.from({ length: width }, (_, at) => TILE_WIDTH * index + at);
    const bytes =
      level === 'entries'
        ? encodeEntryBundle(places.map((place) => entries[place] as Uint8Array))
        : new Uint8Array(Buffer.concat(await Promise.all(places.map((place) => subtree(8 * level, place)))));
    return changes[tilePath(tile)]?.(bytes) ?? bytes;
  };
  return { readTile, root: treeRoot(sha256, subtree, entries.length), size: entries.length };
}

async function problemsOf(log: ReturnType<typeof servedLog>): Promise<readonly string[]> {
  return (await auditLog(nobleLogCrypto, { size: log.size, root: await log.root }, log.readTile)).problems;
}

describe('auditLog', () => {
  const entries = [keyset(1), ...Array.from({ length: 600 }, (_, patch) => release(patch)), keyset(2)].map(encodeLogEntry);

  it('finds nothing in an honest log, and counts its entries', async () => {
    const log = servedLog(entries);
    const audit = await auditLog(nobleLogCrypto, { size: log.size, root: await log.root }, log.readTile);
    expect(audit).toMatchObject({ entryCounts: { keyset: 2, provider: 0, revoked: 0, release: 600 }, repeatedEpochs: 0, problems: [] });
    expect(audit.newEntryCount).toBe(602);
    expect(await problemsOf(servedLog([]))).toEqual([]);
  });

  it('finds changed entries, tiles and roots', async () => {
    const flip = (bytes: Uint8Array) => bytes.with(bytes.length - 1, (bytes.at(-1) as number) ^ 1);
    expect(await problemsOf(servedLog(entries, { 'tile/0/001': flip }))).toEqual(['tile/0/001 does not contain the hashes of the entries']);
    expect(await problemsOf(servedLog(entries, { 'tile/1/000.p/2': flip }))).toHaveLength(1);
    expect((await problemsOf(servedLog(entries, { 'tile/entries/002.p/90': (bytes) => bytes.slice(0, -1) }))).join('\n')).toContain(
      'tile/entries/002.p/90: the bundle ends inside an entry',
    );
    const other = servedLog([...entries.slice(0, -1), encodeLogEntry(keyset(3))]);
    const audit = await auditLog(nobleLogCrypto, { size: entries.length, root: await other.root }, servedLog(entries).readTile);
    expect(audit.problems).toEqual(['the entries do not lead to the root of the checkpoint']);
  });

  it('counts repeated epochs, and finds unknown entries', async () => {
    const log = servedLog([encodeLogEntry(keyset(5)), encodeLogEntry(keysetLogEntry(sha256, 5, Uint8Array.of(9))), Uint8Array.of(0x7b)]);
    const audit = await auditLog(nobleLogCrypto, { size: log.size, root: await log.root }, log.readTile);
    expect(audit).toMatchObject({ repeatedEpochs: 1, problems: ['entry 2: the entry is not JSON'] });
  });
});

describe('auditLog after an earlier audit', () => {
  /** Over 2¹⁶ entries, so that the tree has a full tile of level 1. */
  const COUNT = 65_536 + 300;
  const all = Array.from({ length: COUNT }, (_, patch) => encodeLogEntry(patch % 500 === 0 ? keyset(patch) : release(patch)));
  const hashes = all.map((entry) => leafHash(sha256, entry));
  const complete = servedLog(all, {}, hashes);

  /** The log with its first `size` entries, and the tile paths that were read. */
  async function treeAt(size: number, changes?: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>>) {
    const log = servedLog(all.slice(0, size), changes, hashes);
    const paths: string[] = [];
    const readTile = (tile: TileId): Promise<Uint8Array> => {
      paths.push(tilePath(tile));
      return log.readTile(tile);
    };
    return { tree: { size, root: await log.root }, readTile, paths };
  }

  async function audited(size: number): Promise<AuditedLog> {
    const { tree, readTile } = await treeAt(size);
    return (await auditLog(nobleLogCrypto, tree, readTile)).audited;
  }

  it('reads new entries and tiles only, and gets the result of a whole audit', async () => {
    const whole = await auditLog(nobleLogCrypto, { size: COUNT, root: await complete.root }, complete.readTile);
    let stored = await audited(700);
    for (const [size, maxReads] of [
      [701, 10],
      [1024, 15],
      [1025, 10],
      [65_535, 600],
      [65_536, 15],
      [COUNT, 15],
    ] as const) {
      const { tree, readTile, paths } = await treeAt(size);
      const audit = await auditLog(nobleLogCrypto, tree, readTile, stored);
      expect(audit.problems, String(size)).toEqual([]);
      expect(audit.newEntryCount).toBe(size - stored.size);
      expect(paths.length, `${size}: ${paths.join(' ')}`).toBeLessThan(maxReads);
      // Stored as JSON between two runs of the program.
      stored = JSON.parse(JSON.stringify(audit.audited)) as AuditedLog;
    }
    expect(stored).toEqual(whole.audited);
  });

  it('reads nothing where nothing was added', async () => {
    const stored = await audited(700);
    for (const size of [700, 650]) {
      const { tree, readTile, paths } = await treeAt(size);
      expect(await auditLog(nobleLogCrypto, tree, readTile, stored)).toMatchObject({ newEntryCount: 0, audited: stored, problems: [] });
      expect(paths).toEqual([]);
    }
  });

  it('finds changes of new entries, of new tiles, and of earlier tiles that the root depends on', async () => {
    const stored = await audited(700);
    const flip = (at: number) => (bytes: Uint8Array) => bytes.with(at, (bytes[at] as number) ^ 1);
    for (const changes of [
      { 'tile/entries/003.p/132': flip(40) },
      { 'tile/entries/002': flip(40) },
      { 'tile/0/002': flip(0) },
      { 'tile/0/003.p/132': flip(131 * 32) },
      { 'tile/1/000.p/3': flip(0) },
      { 'tile/1/000.p/3': flip(64) },
    ]) {
      const { tree, readTile } = await treeAt(900, changes);
      const { problems } = await auditLog(nobleLogCrypto, tree, readTile, stored);
      expect(problems.length, JSON.stringify(Object.keys(changes))).toBeGreaterThan(0);
    }
  });
});

it('noble and node agree on Ed25519 signatures', () => {
  const { publicKey, sign } = ed25519KeyPairFrom(new Uint8Array(32).fill(3));
  const message = Uint8Array.of(1, 2, 3);
  const signature = sign(message);
  for (const { verifyEd25519 } of [nobleLogCrypto, nodeLogCrypto]) {
    expect(verifyEd25519(publicKey, message, signature)).toBe(true);
    expect(verifyEd25519(publicKey, Uint8Array.of(1, 2, 4), signature)).toBe(false);
    expect(verifyEd25519(publicKey, message, signature.slice(1))).toBe(false);
    expect(verifyEd25519(publicKey.slice(1), message, signature)).toBe(false);
    expect(verifyEd25519(new Uint8Array(32).fill(0xff), message, signature)).toBe(false);
  }
});
