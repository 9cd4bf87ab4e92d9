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
import { auditLog, nobleLogCrypto } from '../src/index.js';

const release = (patch: number): LogEntry => ({
  v: 1,
  kind: 'release',
  platform: 'linux-x64',
  version: `1.0.${patch}`,
  sha256: '0'.repeat(64),
});
const keyset = (epoch: number): LogEntry => keysetLogEntry(sha256, epoch, Uint8Array.of(epoch));

/** Tiles of these entries, with changes by path. */
function servedLog(entries: readonly Uint8Array[], changes: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {}) {
  const subtree = async (level: number, index: number): Promise<Uint8Array> =>
    level === 0
      ? leafHash(sha256, entries[index] as Uint8Array)
      : nodeHash(sha256, await subtree(level - 1, 2 * index), await subtree(level - 1, 2 * index + 1));
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
    expect(audit).toEqual({ entryCounts: { keyset: 2, provider: 0, revoked: 0, release: 600 }, repeatedEpochs: 0, problems: [] });
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
