/**
 * Gathers steps into batches, so that many share one transaction and one write to the disk. Batches run one after the other; a
 * batch that fails as a whole is run again step by step, so that only the step at fault fails. A step's promise is kept once it
 * is durable, for which the next batch does not wait; that of a step which may be lost in a crash, once it is committed.
 */
import { LedgerError } from './ledger-error.js';

/** What became of one step of a batch. */
export type StepResult<Outcome> = { readonly ok: Outcome } | { readonly error: unknown };

export interface GroupCommitOptions<Step, Outcome> {
  /** Runs the steps as one transaction, which is committed when it resolves. Rejects when none of them happened. */
  readonly run: (steps: readonly Step[]) => Promise<readonly StepResult<Outcome>[]>;
  /** Resolves when all that was committed before the call is durable. */
  readonly flush: () => Promise<void>;
  /** Whether nothing is lost when this step is undone by a crash of the machine after its outcome was told. */
  readonly mayBeLost: (step: Step) => boolean;
  /** Whether somebody waits for this step before anything of theirs can begin, so that it does not wait for others to gather. */
  readonly isUrgent: (step: Step) => boolean;
  /**
   * Transactions keep this thread busy (SQLite): then at most a fifth of the time goes to them while few steps wait, so that
   * streams are not held up by one transaction per step.
   */
  readonly blocking: boolean;
}

/** Steps in one transaction at most. */
const MAX_PER_BATCH = 256;
/** With so many waiting, the next batch begins at once. */
const ENOUGH = 48;
/** Pause between blocking transactions, as a multiple of what the last one took, and its upper bound in milliseconds. */
const REST = 4;
const LONGEST_REST_MS = 8;

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
  #closed = false;
  #restUntil = 0;
  #endRest: (() => void) | null = null;

  constructor(options: GroupCommitOptions<Step, Outcome>) {
    this.#options = options;
  }

  /** Resolves to the step's outcome once it is durable, or committed where it may be lost. */
  submit(step: Step): Promise<Outcome> {
    if (this.#closed) return Promise.reject(new LedgerError('closed', 'the ledger is closed'));
    return new Promise((resolve, reject) => {
      this.#queue.push({ step, resolve, reject });
      if (this.#queue.length >= ENOUGH || this.#options.isUrgent(step)) this.#endRest?.();
      this.#running ??= this.#runAll();
    });
  }

  /** Takes no more steps and resolves when those that wait are done. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#endRest?.();
    await this.#running;
    await Promise.all(this.#flushing);
  }

  async #runAll(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        await this.#rest();
        const batch = this.#queue.splice(0, MAX_PER_BATCH);
        const begun = performance.now();
        await this.#runBatch(batch);
        if (this.#options.blocking) this.#restUntil = performance.now() + Math.min(LONGEST_REST_MS, REST * (performance.now() - begun));
      }
    } finally {
      // In the turn that saw the queue empty: a step that comes later must find that it has to begin a new run.
      this.#running = null;
    }
  }

  /** Lets the event loop turn, so that steps of the same moment gather; and after a blocking commit, for longer. */
  async #rest(): Promise<void> {
    const pause = this.#restUntil - performance.now();
    const mayWait = this.#queue.length < ENOUGH && !this.#queue.some(({ step }) => this.#options.isUrgent(step));
    if (pause > 1 && mayWait && !this.#closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.#endRest = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#endRest = null;
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
        const failure = new LedgerError('unavailable', 'the disk did not take the step', { cause: error });
        for (const reject of rejects) reject(failure);
      },
    );
    this.#flushing.add(flushed);
    void flushed.then(() => this.#flushing.delete(flushed));
  }
}
