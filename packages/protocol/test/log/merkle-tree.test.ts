import { describe, expect, it } from 'vitest';
import { sha256 } from '../../src/crypto/index.js';
import {
  consistencyProof,
  decodeEntryBundle,
  encodeEntryBundle,
  fromHex,
  inclusionProof,
  LogFormatError,
  leafHash,
  parseTilePath,
  type ReadSubtree,
  subtreesFromTiles,
  TILE_WIDTH,
  type TileId,
  tilePath,
  tileWidth,
  toHex,
  treeRoot,
  verifyConsistency,
  verifyInclusion,
} from '../../src/index.js';
import { naiveConsistency, naivePath, naiveRoot } from './naive-merkle-tree.js';

/** Leaves and roots from the tests of certificate-transparency (merkle_tree_test.cc). */
const CT_LEAVES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'].map(fromHex);
const CT_ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];
/** Inclusion proofs from the same tests: index, size, hashes. */
const CT_PATHS: readonly (readonly [number, number, readonly string[]])[] = [
  [0, 1, []],
  [
    0,
    8,
    [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ],
  ],
  [
    5,
    8,
    [
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  ],
];

const entriesOf = (count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, index) => fromHex(index.toString(16).padStart(8, '0')));

function subtreesOf(entries: readonly Uint8Array[]): ReadSubtree {
  return async (level, index) => {
    const leaves = entries.slice(index * 2 ** level, (index + 1) * 2 ** level);
    if (leaves.length !== 2 ** level) throw new Error(`subtree ${level}/${index} is not complete`);
    return naiveRoot(leaves);
  };
}

describe('Merkle tree', () => {
  it('has the published roots and inclusion proofs', async () => {
    for (const [size, root] of CT_ROOTS.entries()) {
      expect(toHex(await treeRoot(sha256, subtreesOf(CT_LEAVES), size))).toBe(root);
    }
    for (const [index, size, hashes] of CT_PATHS) {
      expect((await inclusionProof(sha256, subtreesOf(CT_LEAVES), index, size)).map(toHex)).toEqual(hashes);
    }
  });

  it('gives the proofs of the recursive definition, and verifies them, for every size up to 40', async () => {
    const entries = entriesOf(40);
    const read = subtreesOf(entries);
    for (let size = 1; size <= entries.length; size++) {
      const prefix = entries.slice(0, size);
      const root = naiveRoot(prefix);
      for (const [index, entry] of prefix.entries()) {
        const proof = await inclusionProof(sha256, read, index, size);
        expect(proof).toEqual(naivePath(index, prefix));
        const claim = { leafHash: leafHash(sha256, entry), index, size, root, proof };
        expect(verifyInclusion(sha256, claim)).toBe(true);
        expect(verifyInclusion(sha256, { ...claim, index: index + 1 })).toBe(false);
        expect(verifyInclusion(sha256, { ...claim, proof: [...proof, root] })).toBe(false);
        if (proof.length > 0) expect(verifyInclusion(sha256, { ...claim, proof: proof.slice(1) })).toBe(false);
      }
      for (let oldSize = 1; oldSize < size; oldSize++) {
        const proof = await consistencyProof(sha256, read, oldSize, size);
        expect(proof).toEqual(naiveConsistency(oldSize, prefix));
        const claim = { oldSize, oldRoot: naiveRoot(entries.slice(0, oldSize)), newSize: size, newRoot: root, proof };
        expect(verifyConsistency(sha256, claim)).toBe(true);
        expect(verifyConsistency(sha256, { ...claim, oldRoot: naiveRoot(entries.slice(1, oldSize + 1)) })).toBe(false);
        expect(verifyConsistency(sha256, { ...claim, newRoot: naiveRoot(entries.slice(1, size)) })).toBe(false);
        expect(verifyConsistency(sha256, { ...claim, proof: proof.slice(1) })).toBe(false);
        expect(verifyConsistency(sha256, { ...claim, proof: [...proof, root] })).toBe(false);
      }
    }
  });

  it('takes only the empty tree as a prefix without a proof', () => {
    const newRoot = naiveRoot(entriesOf(3));
    expect(verifyConsistency(sha256, { oldSize: 0, oldRoot: naiveRoot([]), newSize: 3, newRoot, proof: [] })).toBe(true);
    expect(verifyConsistency(sha256, { oldSize: 0, oldRoot: newRoot, newSize: 3, newRoot, proof: [] })).toBe(false);
    expect(verifyConsistency(sha256, { oldSize: 3, oldRoot: newRoot, newSize: 3, newRoot, proof: [] })).toBe(true);
    expect(verifyConsistency(sha256, { oldSize: 3, oldRoot: naiveRoot([]), newSize: 3, newRoot, proof: [] })).toBe(false);
    expect(verifyConsistency(sha256, { oldSize: 4, oldRoot: newRoot, newSize: 3, newRoot, proof: [] })).toBe(false);
  });
});

describe('tiles', () => {
  it('have the paths of the specification', () => {
    const paths: readonly (readonly [TileId, string])[] = [
      [{ level: 0, index: 0, width: 256 }, 'tile/0/000'],
      [{ level: 0, index: 1_234_067, width: 256 }, 'tile/0/x001/x234/067'],
      [{ level: 1, index: 273, width: 112 }, 'tile/1/273.p/112'],
      [{ level: 'entries', index: 1000, width: 1 }, 'tile/entries/x001/000.p/1'],
    ];
    for (const [id, path] of paths) {
      expect(tilePath(id)).toBe(path);
      expect(parseTilePath(path)).toEqual(id);
    }
    for (const path of [
      'tile/0/0',
      'tile/0/x000/001',
      'tile/00/000',
      'tile/7/000',
      'tile/0/000.p/256',
      'tile/0/000.p/0',
      'tile/0/000.p/01',
    ]) {
      expect(parseTilePath(path), path).toBeNull();
    }
  });

  it('have the widths of the example of 70,000 leaves', () => {
    expect(tileWidth(0, 272, 70_000)).toBe(256);
    expect(tileWidth(0, 273, 70_000)).toBe(112);
    expect(tileWidth(1, 0, 70_000)).toBe(256);
    expect(tileWidth(1, 1, 70_000)).toBe(17);
    expect(tileWidth(2, 0, 70_000)).toBe(1);
    expect(tileWidth('entries', 274, 70_000)).toBeLessThanOrEqual(0);
  });

  it('yield the same roots and proofs as the leaves', async () => {
    const entries = entriesOf(65_537);
    const levels = [entries.map((entry) => leafHash(sha256, entry))];
    for (let level = levels[0] as Uint8Array[]; level.length >= TILE_WIDTH; level = levels.at(-1) as Uint8Array[]) {
      const full = Array.from({ length: Math.floor(level.length / TILE_WIDTH) }, (_, at) =>
        level.slice(TILE_WIDTH * at, TILE_WIDTH * (at + 1)),
      );
      levels.push(await Promise.all(full.map((hashes) => treeRoot(sha256, subtreesOfHashes(hashes), hashes.length))));
    }
    const readTile = async ({ level, index, width }: TileId): Promise<Uint8Array> => {
      const hashes = (levels[level as number] as Uint8Array[]).slice(TILE_WIDTH * index, TILE_WIDTH * index + width);
      return new Uint8Array(Buffer.concat(hashes));
    };
    for (const size of [1, 255, 256, 257, 65_537]) {
      const read = subtreesFromTiles(sha256, size, readTile);
      const root = naiveRoot(entries.slice(0, size));
      expect(await treeRoot(sha256, read, size)).toEqual(root);
      const index = Math.floor(size / 3);
      const proof = await inclusionProof(sha256, read, index, size);
      expect(verifyInclusion(sha256, { leafHash: leafHash(sha256, entries[index] as Uint8Array), index, size, root, proof })).toBe(true);
    }
    const short = subtreesFromTiles(sha256, 257, async (tile) => (await readTile(tile)).slice(1));
    await expect(treeRoot(sha256, short, 257)).rejects.toThrow(LogFormatError);
  });

  it('bundle entries by length', () => {
    const entries = [fromHex(''), fromHex('00'), new Uint8Array(300).fill(7)];
    const bundle = encodeEntryBundle(entries);
    expect(decodeEntryBundle(bundle)).toEqual(entries);
    expect(() => decodeEntryBundle(bundle.slice(0, -1))).toThrow(LogFormatError);
    expect(() => decodeEntryBundle(Uint8Array.of(0))).toThrow(LogFormatError);
    expect(() => encodeEntryBundle([new Uint8Array(65_536)])).toThrow(RangeError);
  });
});

/** Subtrees of a tree whose leaf hashes are given. */
function subtreesOfHashes(hashes: readonly Uint8Array[]): ReadSubtree {
  const read: ReadSubtree = async (level, index) => {
    if (level === 0) return hashes[index] as Uint8Array;
    const [left, right] = await Promise.all([read(level - 1, 2 * index), read(level - 1, 2 * index + 1)]);
    return sha256(Buffer.concat([Uint8Array.of(1), left, right]));
  };
  return read;
}
