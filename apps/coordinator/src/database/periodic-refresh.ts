/** Rereads cached rows every few seconds, so a change on one coordinator reaches the others. Requests never wait for a read. */

interface PeriodicRefreshOptions {
  readonly read: () => Promise<void>;
  readonly everyMs: number;
  /** A later read failed; the cached rows stay valid. */
  readonly onError: (error: unknown) => void;
}

export class PeriodicRefresh {
  readonly #options: PeriodicRefreshOptions;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: PeriodicRefreshOptions) {
    this.#options = options;
  }

  /** First read; rejects on failure, without later reads. Callers close the refresh. */
  async begin(): Promise<void> {
    const { read, everyMs, onError } = this.#options;
    await read();
    this.#timer = setInterval(() => void read().catch(onError), everyMs);
    this.#timer.unref();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}
