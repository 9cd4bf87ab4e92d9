/** Periodic ledger maintenance: `UsageRetentionJob` deletes old history, and the reservation sweeper releases abandoned reservations. */
import type { JobId } from '@inference/protocol';
import { DAY_MS, HOUR_MS } from '../../time-units.js';
import type { Ledger } from './ledger.js';

interface UsageRetentionJobOptions {
  /** Maximum age of jobs and postings in days. With null, only roll-ups with a fixed retention are pruned. */
  readonly days: number | null;
  readonly now: () => number;
  /** Deletes history before a time in milliseconds, and resolves to the number of deleted entries. Rejects soon after an abort. */
  readonly prune: (before: number, signal: AbortSignal) => Promise<number>;
  readonly onPruned: (entries: number) => void;
  readonly onError: (error: unknown) => void;
  readonly everyMs?: number;
}

/** Runs at once and then every hour. Callers must close it. */
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

  /** Runs one deletion. Concurrent callers share it. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#prune().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Aborts a running deletion, whose completed parts stay deleted. The database may be closed afterwards. */
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

interface ReservationSweeperOptions {
  readonly ledger: Pick<Ledger, 'sweep'>;
  readonly liveJobs: () => ReadonlySet<JobId>;
  readonly now: () => number;
  readonly everyMs?: number;
  readonly onSwept: (released: number) => void;
  readonly onError: (error: unknown) => void;
}

const EVERY_MS = 60_000;
/** Minimum age of an own reservation that is released, in milliseconds. Only a guard: live jobs are skipped anyway. */
const MIN_RESERVATION_AGE_MS = 60_000;

/**
 * Releases abandoned reservations at start and every minute, except those of live jobs. Returns a function that stops the sweeper.
 *
 * Rejects if the first sweep fails.
 */
export async function startReservationSweeper(options: ReservationSweeperOptions): Promise<() => Promise<void>> {
  const { ledger, liveJobs, now, onSwept, onError } = options;
  const sweep = async (): Promise<void> => {
    const released = await ledger.sweep(liveJobs(), now() - MIN_RESERVATION_AGE_MS);
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
