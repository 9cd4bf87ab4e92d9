/**
 * Removes history from time to time: usage entries that are older than the operator wants to keep, and roll-ups that no window
 * reads any more. Balances, statistics and the leaderboard are sums that were taken when jobs were settled; none of them changes.
 */
import type { JobId } from '@inference/protocol';
import type { Ledger } from './ledger.js';

export interface UsageRetentionJobOptions {
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
export class UsageRetentionJob {
  readonly #options: UsageRetentionJobOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #ending = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: UsageRetentionJobOptions) {
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

export interface ReservationSweeperOptions {
  readonly ledger: Pick<Ledger, 'sweep'>;
  readonly liveJobs: () => ReadonlySet<JobId>;
  readonly now: () => number;
  readonly everyMs?: number;
  readonly onSwept: (released: number) => void;
  readonly onError: (error: unknown) => void;
}

const EVERY_MS = 60_000;
/** A hold of this process is live before it is made, so this much only covers clocks that are set. */
const YOUNG_MS = 60_000;

/** Sweeps once, and from then on now and again. Rejects when the first sweep fails. Returns the function that ends it. */
export async function startReservationSweeper(options: ReservationSweeperOptions): Promise<() => Promise<void>> {
  const { ledger, liveJobs, now, onSwept, onError } = options;
  const sweep = async (): Promise<void> => {
    const released = await ledger.sweep(liveJobs(), now() - YOUNG_MS);
    if (released > 0) onSwept(released);
  };
  await sweep();
  let running: Promise<void> | null = null;
  const timer = setInterval(() => {
    running ??= sweep()
      .catch(onError)
      .finally(() => {
        running = null;
      });
  }, options.everyMs ?? EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
