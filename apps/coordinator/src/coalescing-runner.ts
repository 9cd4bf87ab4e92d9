/** `CoalescingRunner` runs a task, one run at a time. All calls of `run` during a run share the following run. */
export class CoalescingRunner {
  readonly #task: () => Promise<unknown>;
  /** End of the newest started run. Never rejects. */
  #ended: Promise<void> = Promise.resolve();
  /** The next run, until it starts. */
  #next: Promise<void> | null = null;
  #isRunning = false;

  constructor(task: () => Promise<unknown>) {
    this.#task = task;
  }

  /** Whether a run has started and not ended. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /**
   * Resolves at the end of a run that started after this call, and rejects if that run fails. A failure does not prevent later runs.
   *
   * Calls in one turn of the event loop share one run.
   */
  run(): Promise<void> {
    this.#next ??= this.#ended.then(() => {
      this.#next = null;
      const run = this.#start();
      this.#ended = run.catch(() => {});
      return run;
    });
    return this.#next;
  }

  /** Resolves when no run is left. Never rejects. */
  async whenIdle(): Promise<void> {
    while (this.#next !== null || this.#isRunning) await (this.#next ?? this.#ended).catch(() => {});
  }

  async #start(): Promise<void> {
    this.#isRunning = true;
    try {
      await this.#task();
    } finally {
      this.#isRunning = false;
    }
  }
}
