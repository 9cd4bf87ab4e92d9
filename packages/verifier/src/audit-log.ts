/** Audits a transparency log: recomputes the root from entries, and compares every tile. Continues from an earlier result. */
import {
  concatBytes,
  decodeEntryBundle,
  equalBytes,
  HASH_BYTES,
  LOG_ENTRY_KINDS,
  type LogCrypto,
  type LogEntry,
  type LogEntryKind,
  LogFormatError,
  leafHash,
  pairHashes,
  parseLogEntry,
  subtreesFromTiles,
  TILE_WIDTH,
  type TileId,
  tilePath,
  tileWidth,
  treeRoot,
} from '@inference/protocol';
import Type, { type Static } from 'typebox';

const CountSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** Audited part of a log, to be stored between audits. */
export const AuditedLogSchema = Type.Object(
  {
    /** Number of audited entries, from the first one on. */
    size: CountSchema,
    entry_counts: Type.Object(
      { keyset: CountSchema, provider: CountSchema, revoked: CountSchema, release: CountSchema },
      { additionalProperties: false },
    ),
    /** Largest epoch of a keyset; -1: none. */
    latest_epoch: Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER }),
    repeated_epochs: CountSchema,
  },
  { additionalProperties: false },
);
export type AuditedLog = Static<typeof AuditedLogSchema>;

export interface LogAudit {
  /** Of the whole log. */
  readonly entryCounts: Readonly<Record<LogEntryKind, number>>;
  /** Keysets whose epoch does not grow: published for some clients only, or without claimed epochs. */
  readonly repeatedEpochs: number;
  /** Number of entries that no earlier audit has checked. */
  readonly newEntryCount: number;
  /** To be stored after an audit without problems, for the next one. */
  readonly audited: AuditedLog;
  /** Sentences; empty for a log without contradictions. */
  readonly problems: readonly string[];
}

interface AuditedTree {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Hashes of one tile level, from the tile on in which the new ones begin. */
interface NewHashes {
  /** Index of the first hash, a multiple of the tile width. */
  readonly first: number;
  readonly hashes: readonly Uint8Array[];
}

type ReadTile = (tile: TileId) => Promise<Uint8Array>;

const MAX_PROBLEMS = 20;
const NOTHING_AUDITED: AuditedLog = {
  size: 0,
  entry_counts: { keyset: 0, provider: 0, revoked: 0, release: 0 },
  latest_epoch: -1,
  repeated_epochs: 0,
};

/**
 * Audits the tree of a verified checkpoint. Rejects only when `readTile` rejects.
 *
 * @param previous Result of an earlier audit, whose tree this one extends. Only later entries are read.
 */
export async function auditLog(
  crypto: LogCrypto,
  { size, root }: AuditedTree,
  readTile: ReadTile,
  previous: AuditedLog = NOTHING_AUDITED,
): Promise<LogAudit> {
  const { sha256 } = crypto;
  const problems: string[] = [];
  const report = (problem: string): void => {
    if (problems.length < MAX_PROBLEMS) problems.push(problem);
  };
  const contents = new EntryContents(report, previous);
  if (size <= previous.size) return { ...contents.result(previous.size), newEntryCount: 0, problems };
  const levels: NewHashes[] = [];
  let next: NewHashes | null = await leafHashes(crypto, { size, readTile, report, previousSize: previous.size, contents });
  for (let level = 0; next !== null; level++) {
    levels.push(next);
    for (const tile of tilesOf(level, size, next.first / TILE_WIDTH)) {
      if (!equalBytes(await readTile(tile), tileBytes(next, tile))) report(`${tilePath(tile)} does not contain the hashes of the entries`);
    }
    next = await nextLevel(crypto, { hashes: next, level: level + 1, size, readTile });
  }
  // Earlier tiles are read from the log. The root authenticates them.
  const read = subtreesFromTiles(sha256, size, async (tile) => {
    const known = levels[Number(tile.level)];
    return known !== undefined && TILE_WIDTH * tile.index >= known.first ? tileBytes(known, tile) : await readTile(tile);
  });
  const computed = await treeRoot(sha256, read, size).catch((error: unknown) => {
    // Missing entries were reported above.
    if (error instanceof LogFormatError) return null;
    throw error;
  });
  if (computed === null || !equalBytes(computed, root)) report('the entries do not lead to the root of the checkpoint');
  return { ...contents.result(size), newEntryCount: size - previous.size, problems };
}

interface LeavesToRead {
  readonly size: number;
  readonly readTile: ReadTile;
  readonly report: (problem: string) => void;
  readonly previousSize: number;
  readonly contents: EntryContents;
}

/** Reads the bundles with new entries. Earlier entries of the first bundle are hashed again, and not counted. */
async function leafHashes({ sha256 }: LogCrypto, { size, readTile, report, previousSize, contents }: LeavesToRead): Promise<NewHashes> {
  const firstTile = Math.floor(previousSize / TILE_WIDTH);
  const first = TILE_WIDTH * firstTile;
  const hashes: Uint8Array[] = [];
  for (const tile of tilesOf('entries', size, firstTile)) {
    for (const entry of entriesOf(await readTile(tile), tile, report)) {
      const index = first + hashes.push(leafHash(sha256, entry)) - 1;
      if (index >= previousSize) contents.add(entry, index);
    }
  }
  return { first, hashes };
}

interface LevelToCompute {
  /** Hashes of the level below. */
  readonly hashes: NewHashes;
  readonly level: number;
  readonly size: number;
  readonly readTile: ReadTile;
}

/** Roots of the new full tiles, after the served hashes that share their tile; null without a new full tile. */
async function nextLevel({ sha256 }: LogCrypto, { hashes: below, level, size, readTile }: LevelToCompute): Promise<NewHashes | null> {
  let roots = below.hashes.slice(0, below.hashes.length - (below.hashes.length % TILE_WIDTH));
  if (roots.length === 0) return null;
  for (let width = TILE_WIDTH; width > 1; width /= 2) roots = pairHashes(sha256, roots);
  const firstRoot = below.first / TILE_WIDTH;
  const index = Math.floor(firstRoot / TILE_WIDTH);
  const first = TILE_WIDTH * index;
  if (first === firstRoot) return { first, hashes: roots };
  const served = await readTile({ level, index, width: tileWidth(level, index, size) });
  const earlier = Array.from({ length: firstRoot - first }, (_, at) => served.slice(HASH_BYTES * at, HASH_BYTES * (at + 1)));
  return { first, hashes: [...earlier, ...roots] };
}

function entriesOf(bundle: Uint8Array, tile: TileId, report: (problem: string) => void): Uint8Array[] {
  try {
    const entries = decodeEntryBundle(bundle);
    if (entries.length === tile.width) return entries;
    report(`${tilePath(tile)} has ${entries.length} entries`);
  } catch (error) {
    if (!(error instanceof LogFormatError)) throw error;
    report(`${tilePath(tile)}: ${error.message}`);
  }
  return [];
}

/** Tiles of one level, left to right, from an index on. */
function* tilesOf(level: TileId['level'], size: number, first: number): Generator<TileId> {
  for (let index = first; ; index++) {
    const width = tileWidth(level, index, size);
    if (width <= 0) return;
    yield { level, index, width };
  }
}

function tileBytes({ first, hashes }: NewHashes, { index, width }: TileId): Uint8Array {
  const begin = TILE_WIDTH * index - first;
  return concatBytes(...hashes.slice(begin, begin + width));
}

/** Counts entries by kind, and keysets with repeated epochs. */
class EntryContents {
  readonly #counts: Record<LogEntryKind, number>;
  readonly #report: (problem: string) => void;
  #repeatedEpochs: number;
  #latestEpoch: number;

  constructor(report: (problem: string) => void, previous: AuditedLog) {
    this.#report = report;
    this.#counts = { ...previous.entry_counts };
    this.#repeatedEpochs = previous.repeated_epochs;
    this.#latestEpoch = previous.latest_epoch;
  }

  /** `size`: number of audited entries. */
  result(size: number): Pick<LogAudit, 'entryCounts' | 'repeatedEpochs' | 'audited'> {
    const [entryCounts, repeatedEpochs] = [{ ...this.#counts }, this.#repeatedEpochs];
    const audited = { size, entry_counts: entryCounts, latest_epoch: this.#latestEpoch, repeated_epochs: repeatedEpochs };
    return { entryCounts, repeatedEpochs, audited };
  }

  add(bytes: Uint8Array, index: number): void {
    let entry: LogEntry;
    try {
      entry = parseLogEntry(bytes);
    } catch (error) {
      if (!(error instanceof LogFormatError)) throw error;
      this.#report(`entry ${index}: ${error.message}`);
      return;
    }
    this.#counts[entry.kind]++;
    if (entry.kind !== 'keyset') return;
    if (entry.epoch <= this.#latestEpoch) this.#repeatedEpochs++;
    this.#latestEpoch = Math.max(this.#latestEpoch, entry.epoch);
  }
}

/** One line such as `keyset 3, provider 20`. */
export function describeEntryCounts(counts: LogAudit['entryCounts']): string {
  return LOG_ENTRY_KINDS.map((kind) => `${kind} ${counts[kind]}`).join(', ');
}
