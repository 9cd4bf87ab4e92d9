/**
 * Removes history from time to time: usage entries that are older than the operator wants to keep, and roll-ups that no window
 * reads any more. Balances, statistics and the leaderboard are sums that were taken when jobs were settled; none of them changes.
 */

export interface UsageRetentionOptions {
  /** Age at which an entry goes, in days; null keeps them all. */
  readonly days: number | null;
  readonly now: () => number;
  /** Removes what ended before a time (milliseconds) and resolves to how many entries that were. Rejects soon after the signal. */
  readonly prune: (before: number, signal: AbortSignal) => Promise<number>;
  readonly onPruned: (entries: number) => void;
  readonly onError: (error: unknown) => void;
  readonly everyMs?: number;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Begins at once, and then does it every hour. Callers close it. */
export class UsageRetention {
  readonly #options: UsageRetentionOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #ending = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: UsageRetentionOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), options.everyMs ?? HOUR_MS);
    this.#timer.unref();
    void this.run();
  }

  /** One removal; whoever calls while it runs waits for the same one. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#prune().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Ends a removal that runs; what it has removed so far is gone. The database may be closed then. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#ending.abort();
    await this.#running;
  }

  async #prune(): Promise<void> {
    const { days, now, prune, onPruned, onError } = this.#options;
    try {
      const entries = await prune(days === null ? 0 : now() - days * DAY_MS, this.#ending.signal);
      if (entries > 0) onPruned(entries);
    } catch (error) {
      if (!this.#ending.signal.aborted) onError(error);
    }
  }
}
