/**
 * `GroupCommit` gathers steps into batches of one transaction. Steps of a failed batch run again alone.
 *
 * Steps resolve once durable, while the next batch runs; steps that a crash may lose resolve once committed.
 */
import { LedgerError } from './ledger-error.js';

/** Result of one step of a batch. */
export type StepResult<Outcome> = { readonly ok: Outcome } | { readonly error: unknown };

interface GroupCommitOptions<Step, Outcome> {
  /** Runs the steps as one transaction, committed when the promise resolves. Rejects if no step was applied. */
  readonly run: (steps: readonly Step[]) => Promise<readonly StepResult<Outcome>[]>;
  /** Resolves when all commits before the call are durable. */
  readonly flush: () => Promise<void>;
  /** Whether a machine crash may undo this step after its caller got the outcome. */
  readonly mayBeLost: (step: Step) => boolean;
  /** Whether the caller cannot start before this step, so the batch does not wait for more steps. */
  readonly isUrgent: (step: Step) => boolean;
  /** Transactions block this thread (SQLite). With few queued steps, transactions get at most a fifth of the time. */
  readonly isBlocking: boolean;
}

const MAX_PER_BATCH = 256;
/** Number of queued steps from which on the next batch starts at once. */
const IMMEDIATE_BATCH_STEPS = 48;
/** Pause between blocking transactions: multiple of the last transaction's duration, and maximum in milliseconds. */
const PAUSE_FACTOR = 4;
const MAX_PAUSE_MS = 8;

interface Waiting<Step, Outcome> {
  readonly step: Step;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

export class GroupCommit<Step, Outcome> {
  readonly #options: GroupCommitOptions<Step, Outcome>;
  #queue: Waiting<Step, Outcome>[] = [];
  #running: Promise<void> | null = null;
  readonly #flushing = new Set<Promise<void>>();
  #isClosed = false;
  #pauseUntil = 0;
  #endPause: (() => void) | null = null;

  constructor(options: GroupCommitOptions<Step, Outcome>) {
    this.#options = options;
  }

  /** Resolves to the step's outcome once durable; a step that may be lost, once committed. */
  submit(step: Step): Promise<Outcome> {
    if (this.#isClosed) return Promise.reject(new LedgerError('closed', 'the ledger is closed'));
    return new Promise((resolve, reject) => {
      this.#queue.push({ step, resolve, reject });
      if (this.#queue.length >= IMMEDIATE_BATCH_STEPS || this.#options.isUrgent(step)) this.#endPause?.();
      this.#running ??= this.#runAll();
    });
  }

  /** Accepts no more steps. Resolves after the queued steps. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endPause?.();
    await this.#running;
    await Promise.all(this.#flushing);
  }

  async #runAll(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        await this.#pauseBeforeBatch();
        const batch = this.#queue.splice(0, MAX_PER_BATCH);
        const startedAt = performance.now();
        await this.#runBatch(batch);
        if (this.#options.isBlocking)
          this.#pauseUntil = performance.now() + Math.min(MAX_PAUSE_MS, PAUSE_FACTOR * (performance.now() - startedAt));
      }
    } finally {
      // Cleared in the same event-loop turn that found the queue empty, so a later step starts a new run.
      this.#running = null;
    }
  }

  /** Yields to the event loop, so concurrent steps gather; longer after a blocking commit. */
  async #pauseBeforeBatch(): Promise<void> {
    const pause = this.#pauseUntil - performance.now();
    const mayWait = this.#queue.length < IMMEDIATE_BATCH_STEPS && !this.#queue.some(({ step }) => this.#options.isUrgent(step));
    if (pause > 1 && mayWait && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.#endPause = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#endPause = null;
    }
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  async #runBatch(batch: readonly Waiting<Step, Outcome>[]): Promise<void> {
    let results: readonly StepResult<Outcome>[];
    try {
      results = await this.#options.run(batch.map((waiting) => waiting.step));
    } catch (error) {
      if (batch.length === 1 || (error instanceof LedgerError && error.fault === 'unavailable')) {
        for (const waiting of batch) waiting.reject(error);
        return;
      }
      for (const waiting of batch) await this.#runBatch([waiting]);
      return;
    }
    const durable: (() => void)[] = [];
    const rejects: ((error: unknown) => void)[] = [];
    batch.forEach((waiting, index) => {
      const result = results[index];
      if (result === undefined) waiting.reject(new Error('a step of the batch has no result'));
      else if ('error' in result) waiting.reject(result.error);
      else if (this.#options.mayBeLost(waiting.step)) waiting.resolve(result.ok);
      else {
        durable.push(() => waiting.resolve(result.ok));
        rejects.push(waiting.reject);
      }
    });
    if (durable.length === 0) return;
    const flushed = this.#options.flush().then(
      () => {
        for (const resolve of durable) resolve();
      },
      (error: unknown) => {
        const failure = new LedgerError('unavailable', 'the step could not be written to the disk', { cause: error });
        for (const reject of rejects) reject(failure);
      },
    );
    this.#flushing.add(flushed);
    void flushed.then(() => this.#flushing.delete(flushed));
  }
}
