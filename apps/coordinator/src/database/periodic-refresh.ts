/**
 * What is kept in memory and read from the database again every few seconds, so that what is changed on one coordinator reaches
 * the others. Nothing of it stands between a request and its answer.
 */

export interface PeriodicRefreshOptions {
  /** Reads all of it again. */
  readonly read: () => Promise<void>;
  readonly everyMs: number;
  /** A later reading failed; what was read before holds. */
  readonly onError: (error: unknown) => void;
}

export class PeriodicRefresh {
  readonly #options: PeriodicRefreshOptions;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: PeriodicRefreshOptions) {
    this.#options = options;
  }

  /** Reads it for the first time; rejects where that fails, and then there are no later readings. Callers close it. */
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
