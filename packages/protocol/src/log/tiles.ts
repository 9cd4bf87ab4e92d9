/** Tiles (256 neighbouring hashes of the Merkle tree) and entry bundles, with their paths (C2SP tlog-tiles). */
import { concatBytes } from '../bytes.js';
import { LogFormatError, type Sha256 } from './crypto.js';
import { HASH_BYTES, nodeHash, type ReadSubtree } from './merkle-tree.js';

/** Number of tree levels in one tile. */
const TILE_HEIGHT = 8;
/** Number of hashes in a full tile, and of entries in a full bundle. */
export const TILE_WIDTH = 256;
/** The length field of an entry has 16 bits. */
export const MAX_ENTRY_BYTES = 65_535;
/** Largest tile level of a tree with at most 2^53 leaves. */
const MAX_TILE_LEVEL = 6;

export interface TileId {
  readonly level: number | 'entries';
  readonly index: number;
  /** Number of hashes, 1 to 256; less than 256 for a partial tile. */
  readonly width: number;
}

/** Path below the log's prefix, such as `tile/0/x001/234.p/5`. */
export function tilePath({ level, index, width }: TileId): string {
  const digits = String(index);
  const groups = digits.padStart(3 * Math.ceil(digits.length / 3), '0').match(/\d{3}/g) ?? [];
  const last = groups.length - 1;
  const name = groups.map((group, position) => (position === last ? group : `x${group}`)).join('/');
  return `tile/${level}/${name}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

/** Inverse of {@link tilePath}; null if the text is not a tile path. */
export function parseTilePath(path: string): TileId | null {
  const match = /^tile\/(entries|[0-6])\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path);
  const [, level, name, width] = match ?? [];
  if (level === undefined || name === undefined) return null;
  const id: TileId = {
    level: level === 'entries' ? level : Number(level),
    index: Number(name.replace(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  return Number.isSafeInteger(id.index) && tilePath(id) === path && id.width > 0 ? id : null;
}

/** Width of a tile in a tree of `size` leaves; 0 or negative if the tile is outside the tree. */
export function tileWidth(level: number | 'entries', index: number, size: number): number {
  const hashes = Math.floor(size / TILE_WIDTH ** (level === 'entries' ? 0 : level));
  return Math.min(TILE_WIDTH, hashes - TILE_WIDTH * index);
}

/**
 * Returns a reader of complete subtrees in a tree of `size` leaves. Calls `readTile` once per tile.
 *
 * @throws {LogFormatError} From the reader: a tile has the wrong length.
 */
export function subtreesFromTiles(sha256: Sha256, size: number, readTile: (tile: TileId) => Promise<Uint8Array>): ReadSubtree {
  const tiles = new Map<string, Promise<Uint8Array>>();
  return async (level, index) => {
    const tileLevel = Math.min(Math.floor(level / TILE_HEIGHT), MAX_TILE_LEVEL);
    const count = 2 ** (level - TILE_HEIGHT * tileLevel);
    const tileIndex = Math.floor((index * count) / TILE_WIDTH);
    const tile: TileId = { level: tileLevel, index: tileIndex, width: tileWidth(tileLevel, tileIndex, size) };
    const path = tilePath(tile);
    const reading = tiles.get(path) ?? readTile(tile);
    tiles.set(path, reading);
    const bytes = await reading;
    if (bytes.length !== HASH_BYTES * tile.width) throw new LogFormatError(`${path} has ${bytes.length} bytes`);
    const first = index * count - TILE_WIDTH * tileIndex;
    let hashes: Uint8Array[] = Array.from({ length: count }, (_, at) =>
      bytes.slice(HASH_BYTES * (first + at), HASH_BYTES * (first + at + 1)),
    );
    while (hashes.length > 1) hashes = pairHashes(sha256, hashes);
    return hashes[0] as Uint8Array;
  };
}

/** Hashes of the next higher level of a complete subtree. */
export function pairHashes(sha256: Sha256, hashes: readonly Uint8Array[]): Uint8Array[] {
  return Array.from({ length: hashes.length / 2 }, (_, at) =>
    nodeHash(sha256, hashes[2 * at] as Uint8Array, hashes[2 * at + 1] as Uint8Array),
  );
}

/** Encodes each entry with its length as u16be prefix. Throws RangeError if an entry exceeds {@link MAX_ENTRY_BYTES}. */
export function encodeEntryBundle(entries: readonly Uint8Array[]): Uint8Array {
  return concatBytes(
    ...entries.flatMap((entry) => {
      if (entry.length > MAX_ENTRY_BYTES) throw new RangeError('the entry is too long for a bundle');
      return [Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry];
    }),
  );
}

/** Decodes a bundle. Throws LogFormatError if the bytes end inside an entry. */
export function decodeEntryBundle(bytes: Uint8Array): Uint8Array[] {
  const entries: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const begin = at + 2;
    const end = begin + (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0));
    if (end > bytes.length) throw new LogFormatError('the bundle ends inside an entry');
    entries.push(bytes.slice(begin, end));
    at = end;
  }
  return entries;
}
