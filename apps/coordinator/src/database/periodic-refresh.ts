/** `PeriodicRefresh`: reads cached rows again every few seconds, and at once after a change hint. Requests use the cache meanwhile. */

/** Time after which a read that does not end no longer delays the next one. */
export const MAX_READ_MS = 40_000;

interface PeriodicRefreshOptions {
  readonly read: () => Promise<void>;
  readonly everyMs: number;
  /** Called if a read after the first one failed. The cached rows stay in use. */
  readonly onError: (error: unknown) => void;
}

export class PeriodicRefresh {
  readonly #options: PeriodicRefreshOptions;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();
  /** The next read, which waits for the running one. All callers share it until it starts. */
  #queued: Promise<void> | null = null;

  constructor(options: PeriodicRefreshOptions) {
    this.#options = options;
  }

  /** Reads for the first time, then starts the timer. Rejects if the read fails. The caller must call `close`. */
  async begin(): Promise<void> {
    const { read, everyMs } = this.#options;
    await read();
    this.#timer = setInterval(() => void this.refreshNow(), everyMs);
    this.#timer.unref();
  }

  /** Reads now, or after the running read. Never rejects. */
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

/** Resolves when `promise` does, or after `ms`. `promise` must never reject. */
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
