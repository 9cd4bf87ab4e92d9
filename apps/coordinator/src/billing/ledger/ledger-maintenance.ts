/** Periodic tasks of the ledger: `UsageRetentionJob` deletes old history, the reservation sweeper releases abandoned reservations. */
import type { JobId } from '@inference/protocol';
import { RepeatedTask } from '../../repeated-task.js';
import { DAY_MS, HOUR_MS } from '../../time-units.js';
import type { Ledger } from './ledger.js';

interface UsageRetentionJobOptions {
  /** Maximum age of jobs and postings in days. Null: no maximum; `prune` is then called with 0. */
  readonly days: number | null;
  readonly now: () => number;
  /**
   * Deletes history before a time in milliseconds since 1970 (0: none), and roll-ups after their fixed times.
   *
   * Resolves to the number of deleted entries. Rejects soon after an abort.
   */
  readonly prune: (before: number, signal: AbortSignal) => Promise<number>;
  readonly onPruned: (entries: number) => void;
  readonly onError: (error: unknown) => void;
  readonly everyMs?: number;
}

/** Runs at once and then every hour. Callers must close it. */
export class UsageRetentionJob {
  readonly #options: UsageRetentionJobOptions;
  readonly #ending = new AbortController();
  readonly #repeated: RepeatedTask;

  constructor(options: UsageRetentionJobOptions) {
    this.#options = options;
    this.#repeated = new RepeatedTask(
      options.everyMs ?? HOUR_MS,
      () => this.#prune(),
      (error) => {
        if (!this.#ending.signal.aborted) options.onError(error);
      },
    );
    void this.run();
  }

  /** Runs one deletion. Concurrent callers share it. Never rejects. */
  run(): Promise<void> {
    return this.#repeated.run();
  }

  /** Aborts a running deletion, whose completed parts stay deleted. The database may be closed afterwards. */
  close(): Promise<void> {
    this.#ending.abort();
    return this.#repeated.stop();
  }

  async #prune(): Promise<void> {
    const { days, now, prune, onPruned } = this.#options;
    const entries = await prune(days === null ? 0 : now() - days * DAY_MS, this.#ending.signal);
    if (entries > 0) onPruned(entries);
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
/** Minimum age of an own reservation that is released, in milliseconds. A precaution only, because live jobs are skipped anyway. */
const MIN_RESERVATION_AGE_MS = 60_000;

/**
 * Releases reservations of dead coordinators, and own ones whose job is not in `liveJobs`, at start and every minute.
 *
 * Resolves to a function that stops the sweeper. Rejects if the first sweep fails.
 */
export async function startReservationSweeper(options: ReservationSweeperOptions): Promise<() => Promise<void>> {
  const { ledger, liveJobs, now, onSwept, onError } = options;
  const sweep = async (): Promise<void> => {
    const released = await ledger.sweep(liveJobs(), now() - MIN_RESERVATION_AGE_MS);
    if (released > 0) onSwept(released);
  };
  await sweep();
  const sweeping = new RepeatedTask(options.everyMs ?? EVERY_MS, sweep, onError);
  return () => sweeping.stop();
}
