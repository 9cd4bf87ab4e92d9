/**
 * `GroupCommit` runs concurrent ledger steps (reserve, settle, deposit, …) as batches, with one transaction per batch.
 *
 * If a batch fails while the database is available, its steps run again one by one.
 *
 * A step resolves when its transaction is flushed to disk; the next batch need not wait. A step that a crash may undo resolves when its
 * transaction is committed.
 */
import { LedgerError } from './ledger-error.js';

export type StepResult<Outcome> = { readonly ok: Outcome } | { readonly error: unknown };

interface GroupCommitOptions<Step, Outcome> {
  /** Runs the steps in one transaction. Rejects with `unavailable` if unknown whether they were applied; otherwise none was. */
  readonly run: (steps: readonly Step[]) => Promise<readonly StepResult<Outcome>[]>;
  /** Resolves when all earlier commits are durable. */
  readonly flush: () => Promise<void>;
  /** Whether a crash of the machine may undo the step after its caller received the outcome. */
  readonly mayBeLost: (step: Step) => boolean;
  /** Whether the step ends the pause before a batch, because a request waits for the step. */
  readonly isUrgent: (step: Step) => boolean;
  /** Whether transactions block this thread (SQLite). A pause then precedes batches of a few steps that are not urgent. */
  readonly isBlocking: boolean;
}

const MAX_PER_BATCH = 256;
/** Number of queued steps that start a batch without a pause. */
const IMMEDIATE_BATCH_STEPS = 48;
/** Pause after a blocking transaction, as a multiple of its duration. */
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
  /** By `performance.now()`. */
  #pauseUntil = 0;
  /** Null unless a pause is running. */
  #endPause: (() => void) | null = null;

  constructor(options: GroupCommitOptions<Step, Outcome>) {
    this.#options = options;
  }

  /** Resolves to the outcome when the step is durable, or when it is committed and `mayBeLost`. */
  submit(step: Step): Promise<Outcome> {
    if (this.#isClosed) return Promise.reject(new LedgerError('closed', 'the ledger is closed'));
    return new Promise((resolve, reject) => {
      this.#queue.push({ step, resolve, reject });
      if (this.#queue.length >= IMMEDIATE_BATCH_STEPS || this.#options.isUrgent(step)) this.#endPause?.();
      this.#running ??= this.#runAll();
    });
  }

  /** Rejects further steps, and resolves after the queued ones. */
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
      // Cleared in the same turn of the event loop that found the queue empty, so that a later step starts a new run.
      this.#running = null;
    }
  }

  /** Yields to the event loop, so that concurrent steps share a batch. First waits for the rest of a pause, if the steps may wait. */
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
    await new Promise((resolve) => setImmediate(resolve));
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
