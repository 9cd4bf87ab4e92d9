/**
 * `LogMonitor` downloads checkpoints (signed tree size and root) of the coordinator's transparency log, and verifies that the log only grows.
 *
 * A coordinator could show clients and providers different logs (split view). Answers to sealed requests therefore carry the checkpoint that
 * this provider verified, and the client compares it with its own.
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
/** Minimum time before a download that a client causes. */
const MIN_INTERVAL_MS = 10_000;
/** Maximum age of a checkpoint. After as long without a verification, the monitor forgets the log and its key. */
const MAX_AGE_MS = 3_600_000;
const DOWNLOAD_TIMEOUT_MS = 10_000;
/** Maximum size of a checkpoint, key or tile (256 hashes). */
const MAX_DOWNLOAD_BYTES = 16_384;

interface LogMonitorOptions {
  /** HTTP address of the coordinator. */
  readonly coordinator: string;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Called when a downloaded key or checkpoint fails verification: contradictory, malformed, wrongly signed or too old. */
  readonly onContradiction: (reason: string) => void;
  /** Called when a client names another root for the verified size, at most once per download. */
  readonly onOtherHead: () => void;
}

interface MonitoredLog {
  /** Holds the log's key as first downloaded. */
  readonly verifier: LogVerifier;
  /** Largest verified tree, which later trees must extend. Null before the first verification. */
  readonly tree: StoredCheckpoint | null;
  /** Checkpoint of `tree` as a signed note (C2SP), with the log's own signature only. Null as `tree`. */
  readonly checkpoint: string | null;
  /** Time of the last verification, at first of the key's download. */
  readonly verifiedAt: number;
}

/** Not evidence against the log, unlike a failed verification. */
class DownloadFailed extends Error {}

export class LogMonitor {
  readonly #options: LogMonitorOptions;
  readonly #abort = new AbortController();
  #log: MonitoredLog | null = null;
  #runningRefresh: Promise<void> | null = null;
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #hasReportedOtherHead = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: LogMonitorOptions) {
    this.#options = options;
  }

  /** Refreshes now, and then every five minutes until `close`. May be called again. */
  start(): void {
    if (this.#abort.signal.aborted) return;
    this.#timer ??= setInterval(() => void this.refresh(), REFRESH_MS).unref();
    void this.refresh();
  }

  close(): void {
    this.#abort.abort();
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /**
   * Returns the newest verified checkpoint as a signed note. Null if no verification succeeded in the last hour.
   *
   * @param clientHead Tree that a client named in a sealed request. May start a refresh in the background.
   */
  checkpointFor(clientHead: E2eLogHead): string | null {
    const tree = this.#log?.tree ?? null;
    if (tree === null || clientHead.size > tree.size) this.#refreshForClient();
    // Clients do not sign the tree, so a different root proves nothing against the log.
    else if (clientHead.size === tree.size && clientHead.root !== tree.root) this.#reportOtherHead();
    const isRecent = this.#log !== null && this.#now() - this.#log.verifiedAt < MAX_AGE_MS;
    return isRecent ? (this.#log?.checkpoint ?? null) : null;
  }

  /** Downloads and verifies the current checkpoint, or keeps the earlier one. Never rejects. Concurrent calls share a download. */
  refresh(): Promise<void> {
    this.#runningRefresh ??= this.#refresh()
      .catch((error: unknown) => {
        if (!(error instanceof DownloadFailed)) this.#options.onContradiction(error instanceof Error ? error.message : String(error));
      })
      .finally(() => {
        this.#runningRefresh = null;
      });
    return this.#runningRefresh;
  }

  /** Clients must not cause arbitrarily many downloads. */
  #refreshForClient(): void {
    if (this.#timer !== null && this.#now() - this.#refreshedAt >= MIN_INTERVAL_MS) void this.refresh();
  }

  async #refresh(): Promise<void> {
    const now = this.#now();
    this.#refreshedAt = now;
    this.#hasReportedOtherHead = false;
    if (this.#log !== null && now - this.#log.verifiedAt >= MAX_AGE_MS) this.#log = null;
    const log = this.#log ?? {
      verifier: this.#verifierOf((await this.#text('key')).trim()),
      tree: null,
      checkpoint: null,
      verifiedAt: now,
    };
    // Keeps the key even if the checkpoint below cannot be downloaded or verified.
    this.#log = log;
    const note = await this.#text('checkpoint');
    const verdict = await log.verifier.verifyCheckpoint(note, log.tree, now);
    if (!verdict.ok) {
      this.#options.onContradiction(verdict.reason);
      return;
    }
    // An older checkpoint that is consistent with the known tree also verifies, but does not replace the tree.
    const isOlder = verdict.checkpoint.size < verdict.stored.size;
    this.#log = {
      ...log,
      tree: verdict.stored,
      checkpoint: isOlder ? log.checkpoint : withoutCosignatures(note, verdict.checkpoint.origin),
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
      if (error instanceof DownloadFailed) throw error;
      throw new LogFormatError(`the ${path} of the log is not UTF-8`);
    }
  }

  /** Throws {@link DownloadFailed}. */
  async #download(path: string): Promise<Uint8Array> {
    const { coordinator, fetch = globalThis.fetch } = this.#options;
    const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS)]);
    try {
      const response = await fetch(`${coordinator}/e2e/log/${path}`, { redirect: 'error', signal });
      if (response.status !== 200) {
        await response.body?.cancel();
        throw new DownloadFailed(`${path} answered ${response.status}`);
      }
      return await boundedBytes(response);
    } catch (error) {
      throw error instanceof DownloadFailed ? error : new DownloadFailed(`${path} cannot be read`, { cause: error });
    }
  }

  #reportOtherHead(): void {
    if (this.#hasReportedOtherHead) return;
    this.#hasReportedOtherHead = true;
    this.#options.onOtherHead();
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** Shortens the note by the witnesses' cosignatures, which clients do not require here. */
function withoutCosignatures(note: string, origin: string): string {
  const { text, signatures } = parseSignedNote(note);
  return formatSignedNote({ text, signatures: signatures.filter(({ name }) => name === origin) });
}

async function boundedBytes(response: Response): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    length += piece.length;
    if (length > MAX_DOWNLOAD_BYTES) throw new DownloadFailed('a part of the log is too long');
    pieces.push(piece);
  }
  return new Uint8Array(Buffer.concat(pieces));
}
