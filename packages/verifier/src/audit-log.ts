/**
 * `auditLog` audits a transparency log: recomputes tiles and root from the entries, and compares them with the served tiles and the
 * signed root. Used by `inference-verify log`.
 *
 * An audit that continues from an earlier result checks only later entries.
 */
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

/** Result of an audit, stored by the caller as the start of the next audit. */
export const AuditedLogSchema = Type.Object(
  {
    /** Number of audited entries, counted from the first entry of the log. */
    size: CountSchema,
    entry_counts: Type.Object(
      { keyset: CountSchema, provider: CountSchema, revoked: CountSchema, release: CountSchema },
      { additionalProperties: false },
    ),
    /** Largest epoch of a keyset; -1: no keyset yet. */
    latest_epoch: Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER }),
    /** See `LogAudit.repeatedEpochs`. */
    repeated_epochs: CountSchema,
  },
  { additionalProperties: false },
);
export type AuditedLog = Static<typeof AuditedLogSchema>;

export interface LogAudit {
  /** Entries of the whole log by kind. */
  readonly entryCounts: Readonly<Record<LogEntryKind, number>>;
  /**
   * Number of keysets with an epoch that is not larger than an earlier epoch.
   *
   * Possible causes: the operator published a keyset to some clients only, or a coordinator runs an early version.
   */
  readonly repeatedEpochs: number;
  /** Number of entries read by this audit for the first time. */
  readonly newEntryCount: number;
  /** Input of the next audit. Store the value only if there are no problems. */
  readonly audited: AuditedLog;
  /** One sentence each; empty for a correct log. */
  readonly problems: readonly string[];
}

interface AuditedTree {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Recomputed hashes of one tile level. The list starts with the tile that contains the first new hash. */
interface NewHashes {
  /** Index of `hashes[0]` in the level, a multiple of the tile width. */
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
 * @param previous Result of an earlier audit, of a tree that the caller verified to be consistent with this one.
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
  // An earlier audit covered the whole tree.
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
  // Tiles of earlier audits are read from the log, not recomputed. The comparison of the root authenticates the tiles.
  const read = subtreesFromTiles(sha256, size, async (tile) => {
    const known = levels[Number(tile.level)];
    return known !== undefined && TILE_WIDTH * tile.index >= known.first ? tileBytes(known, tile) : await readTile(tile);
  });
  const computed = await treeRoot(sha256, read, size).catch((error: unknown) => {
    // The cause, such as a missing entry, was reported before.
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

/** Reads entry bundles and hashes their entries. The first bundle may begin with audited entries, which are not counted again. */
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

/**
 * Computes the hashes of the next tile level: each is the root of a full tile below. Null: no full tile is new.
 *
 * The first tile of the level may begin with hashes of an earlier audit, which are read from the log.
 */
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

/** Tiles of one level, left to right, beginning at index `first`. */
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

/** Parses entries, and counts entries by kind and keysets with repeated epochs. */
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

/** Counts as text, such as `keyset 3, provider 20, …`. */
export function describeEntryCounts(counts: LogAudit['entryCounts']): string {
  return LOG_ENTRY_KINDS.map((kind) => `${kind} ${counts[kind]}`).join(', ');
}
