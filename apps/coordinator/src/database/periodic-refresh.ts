/** `PeriodicRefresh` rereads cached rows every few seconds, and at once after a hint. Requests never wait. */

/** Maximum delay between two reads, in milliseconds. */
export const MAX_READ_MS = 40_000;

interface PeriodicRefreshOptions {
  readonly read: () => Promise<void>;
  readonly everyMs: number;
  /** A later read failed; the cached rows stay valid. */
  readonly onError: (error: unknown) => void;
}

export class PeriodicRefresh {
  readonly #options: PeriodicRefreshOptions;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();
  /** The next read, which waits for the running read. Shared by all callers until it starts. */
  #queued: Promise<void> | null = null;

  constructor(options: PeriodicRefreshOptions) {
    this.#options = options;
  }

  /** First read; rejects on failure, without later reads. Callers close the refresh. */
  async begin(): Promise<void> {
    const { read, everyMs } = this.#options;
    await read();
    this.#timer = setInterval(() => void this.refreshNow(), everyMs);
    this.#timer.unref();
  }

  /** Reads after a read in progress. Never rejects. */
  refreshNow(): Promise<void> {
    const { read, onError } = this.#options;
    this.#queued ??= this.#running.then(() => {
      this.#queued = null;
      this.#running = settledWithin(read().catch(onError), MAX_READ_MS);
      return this.#running;
    });
    return this.#queued;
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}

/** Resolves with a promise that never rejects, or after `ms`. */
export function settledWithin(promise: Promise<void>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    timer.unref();
    void promise.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
