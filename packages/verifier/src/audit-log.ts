/**
 * Audit of a whole transparency log: computes the root again from the entries, compares every served tile, and counts the entries.
 */
import {
  concatBytes,
  decodeEntryBundle,
  equalBytes,
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

export interface LogAudit {
  readonly entryCounts: Readonly<Record<LogEntryKind, number>>;
  /** Keysets whose epoch does not exceed all earlier ones: of coordinators that published at once, or for some clients only. */
  readonly repeatedEpochs: number;
  /** Sentences; empty for a log without contradictions. */
  readonly problems: readonly string[];
}

interface AuditedTree {
  readonly size: number;
  readonly root: Uint8Array;
}

const MAX_PROBLEMS = 20;

/** Audits the tree of a verified checkpoint. Rejects only when `readTile` rejects. */
export async function auditLog(
  crypto: LogCrypto,
  { size, root }: AuditedTree,
  readTile: (tile: TileId) => Promise<Uint8Array>,
): Promise<LogAudit> {
  const { sha256 } = crypto;
  const problems: string[] = [];
  const report = (problem: string): void => {
    if (problems.length < MAX_PROBLEMS) problems.push(problem);
  };
  const contents = new EntryContents(report);
  let hashes: Uint8Array[] = [];
  for (const tile of tilesOf('entries', size)) {
    const entries = entriesOf(await readTile(tile), tile, report);
    for (const entry of entries) contents.add(entry, hashes.push(leafHash(sha256, entry)) - 1);
  }
  const levels: Uint8Array[][] = [];
  for (let level = 0; hashes.length > 0; level++) {
    levels.push(hashes);
    for (const tile of tilesOf(level, size)) {
      if (!equalBytes(await readTile(tile), tileBytes(hashes, tile)))
        report(`${tilePath(tile)} does not contain the hashes of the entries`);
    }
    hashes = fullTileRoots(crypto, hashes);
  }
  const read = subtreesFromTiles(sha256, size, async (tile) => tileBytes(levels[Number(tile.level)] ?? [], tile));
  const computed = await treeRoot(sha256, read, size).catch((error: unknown) => {
    // Missing entries were reported above.
    if (error instanceof LogFormatError) return null;
    throw error;
  });
  if (computed === null || !equalBytes(computed, root)) report('the entries do not lead to the root of the checkpoint');
  return { entryCounts: contents.counts, repeatedEpochs: contents.repeatedEpochs, problems };
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

/** Tiles of one level, left to right. */
function* tilesOf(level: TileId['level'], size: number): Generator<TileId> {
  for (let index = 0; ; index++) {
    const width = tileWidth(level, index, size);
    if (width <= 0) return;
    yield { level, index, width };
  }
}

function tileBytes(hashes: readonly Uint8Array[], { index, width }: TileId): Uint8Array {
  return concatBytes(...hashes.slice(TILE_WIDTH * index, TILE_WIDTH * index + width));
}

/** Hashes of the next tile level: roots of the full tiles of this one. */
function fullTileRoots({ sha256 }: LogCrypto, hashes: readonly Uint8Array[]): Uint8Array[] {
  let roots = hashes.slice(0, hashes.length - (hashes.length % TILE_WIDTH));
  for (let width = TILE_WIDTH; width > 1; width /= 2) roots = pairHashes(sha256, roots);
  return roots;
}

/** Counts entries by kind, and keysets with repeated epochs. */
class EntryContents {
  readonly counts: Record<LogEntryKind, number> = { keyset: 0, provider: 0, revoked: 0, release: 0 };
  repeatedEpochs = 0;
  readonly #report: (problem: string) => void;
  #latestEpoch = -1;

  constructor(report: (problem: string) => void) {
    this.#report = report;
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
    this.counts[entry.kind]++;
    if (entry.kind !== 'keyset') return;
    if (entry.epoch <= this.#latestEpoch) this.repeatedEpochs++;
    this.#latestEpoch = Math.max(this.#latestEpoch, entry.epoch);
  }
}

/** One line such as `keyset 3, provider 20`. */
export function describeEntryCounts(counts: LogAudit['entryCounts']): string {
  return LOG_ENTRY_KINDS.map((kind) => `${kind} ${counts[kind]}`).join(', ');
}
