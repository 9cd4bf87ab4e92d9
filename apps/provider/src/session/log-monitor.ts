/**
 * `LogMonitor`: downloads the transparency log's checkpoint regularly, and verifies that the new tree extends the previous tree.
 *
 * Answers to sealed requests contain the checkpoint. A client that was shown another log notices the difference (split view).
 */
import {
  type E2eLogHead,
  formatSignedNote,
  fromUtf8,
  LogFormatError,
  LogVerifier,
  parseSignedNote,
  type StoredCheckpoint,
  type TileId,
  tilePath,
} from '@inference/protocol';
import { nodeLogCrypto } from '@inference/protocol/crypto';

const REFRESH_MS = 5 * 60_000;
/** Minimum time between two downloads that clients cause, by naming a larger tree. */
const MIN_INTERVAL_MS = 10_000;
/** Maximum age of a verified checkpoint. Later, the monitor starts again with the log's current key, as if the log were new. */
const MAX_AGE_MS = 3_600_000;
const DOWNLOAD_TIMEOUT_MS = 10_000;
/** Maximum bytes of a checkpoint, key or tile. */
const MAX_BYTES = 16_384;

interface LogMonitorOptions {
  /** HTTP address of the coordinator. */
  readonly coordinator: string;
  /** Replaced by tests. Default: `globalThis.fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Milliseconds since 1970. Default: `Date.now`. */
  readonly now?: () => number;
  /** Called when the log contradicts itself or is malformed, at most once per refresh. */
  readonly onContradiction: (reason: string) => void;
  /** Called when a client names another tree of the same size, at most once per refresh. Any client can cause this call. */
  readonly onOtherHead: () => void;
}

/** State of the monitored log, with the key that the coordinator published at the first download. */
interface MonitoredLog {
  readonly verifier: LogVerifier;
  /** Newest verified tree, which later trees must extend, or null. */
  readonly stored: StoredCheckpoint | null;
  /** Signed note of the newest verified checkpoint, with the log's own signatures, or null. */
  readonly note: string | null;
  /** Time of the last successful verification, in milliseconds since 1970. */
  readonly verifiedAt: number;
}

/** A download failed: the coordinator has no log, cannot be reached, or answered with an error. */
class Unavailable extends Error {}

export class LogMonitor {
  readonly #options: LogMonitorOptions;
  readonly #abort = new AbortController();
  #log: MonitoredLog | null = null;
  #refreshing: Promise<void> | null = null;
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #hasReported = false;
  #hasReportedHead = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: LogMonitorOptions) {
    this.#options = options;
  }

  /** Downloads now and every five minutes until `close`. Further calls download once more. */
  start(): void {
    if (this.#abort.signal.aborted) return;
    this.#timer ??= setInterval(() => void this.refresh(), REFRESH_MS).unref();
    void this.refresh();
  }

  close(): void {
    this.#abort.abort();
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Checkpoint (signed note) for a client with this tree head. Null without a recently verified tree. */
  checkpointFor({ size, root }: E2eLogHead): string | null {
    const stored = this.#log?.stored ?? null;
    // A client's tree head is not signed: it is no evidence against the log, and is never repeated to others.
    if (stored === null || size > stored.size) this.#refreshSoon();
    else if (size === stored.size && root !== stored.root) this.#reportOtherHead();
    const isRecent = this.#log !== null && this.#now() - this.#log.verifiedAt < MAX_AGE_MS;
    return isRecent ? (this.#log?.note ?? null) : null;
  }

  /** Downloads and verifies the current checkpoint. Never rejects; concurrent calls share one download. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh()
      .catch((error: unknown) => {
        // A failed download is not a contradiction, so the checkpoint stays.
        if (!(error instanceof Unavailable)) this.#report(error instanceof Error ? error.message : String(error));
      })
      .finally(() => {
        this.#refreshing = null;
      });
    return this.#refreshing;
  }

  #refreshSoon(): void {
    if (this.#timer !== null && this.#now() - this.#refreshedAt >= MIN_INTERVAL_MS) void this.refresh();
  }

  async #refresh(): Promise<void> {
    const now = this.#now();
    this.#refreshedAt = now;
    this.#hasReported = false;
    this.#hasReportedHead = false;
    if (this.#log !== null && now - this.#log.verifiedAt >= MAX_AGE_MS) this.#log = null;
    const log = this.#log ?? { verifier: this.#verifierOf((await this.#text('key')).trim()), stored: null, note: null, verifiedAt: now };
    this.#log ??= log;
    const note = await this.#text('checkpoint');
    const verdict = await log.verifier.verifyCheckpoint(note, log.stored, now);
    if (!verdict.ok) {
      this.#report(verdict.reason);
      return;
    }
    const isNewest = verdict.stored.size === verdict.checkpoint.size;
    this.#log = {
      ...log,
      stored: verdict.stored,
      note: isNewest ? withoutCosignatures(note, verdict.checkpoint.origin) : log.note,
      verifiedAt: now,
    };
  }

  #verifierOf(key: string): LogVerifier {
    return new LogVerifier({
      crypto: nodeLogCrypto,
      policy: { key, witnesses: [], minCosignatures: 0, maxAgeMs: MAX_AGE_MS },
      readTile: (tile: TileId) => this.#download(tilePath(tile)),
    });
  }

  async #text(path: string): Promise<string> {
    try {
      return fromUtf8(await this.#download(path));
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      throw new LogFormatError(`the ${path} of the log is not UTF-8`);
    }
  }

  /** Throws {@link Unavailable}. */
  async #download(path: string): Promise<Uint8Array> {
    const { coordinator, fetch = globalThis.fetch } = this.#options;
    const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS)]);
    try {
      const response = await fetch(`${coordinator}/e2e/log/${path}`, { redirect: 'error', signal });
      if (response.status !== 200) {
        await response.body?.cancel();
        throw new Unavailable(`${path} answered ${response.status}`);
      }
      return await boundedBytes(response);
    } catch (error) {
      throw error instanceof Unavailable ? error : new Unavailable(`${path} cannot be read`, { cause: error });
    }
  }

  #report(reason: string): void {
    if (this.#hasReported) return;
    this.#hasReported = true;
    this.#options.onContradiction(reason);
  }

  #reportOtherHead(): void {
    if (this.#hasReportedHead) return;
    this.#hasReportedHead = true;
    this.#options.onOtherHead();
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** Removes witnesses' cosignatures to shorten the note. Clients do not require cosignatures in a provider's checkpoint. */
function withoutCosignatures(note: string, origin: string): string {
  const { text, signatures } = parseSignedNote(note);
  return formatSignedNote({ text, signatures: signatures.filter(({ name }) => name === origin) });
}

async function boundedBytes(response: Response): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    length += piece.length;
    if (length > MAX_BYTES) throw new Unavailable('a part of the log is too long');
    pieces.push(piece);
  }
  return new Uint8Array(Buffer.concat(pieces));
}
