/** `CoalescingRunner` runs a task, one run at a time. All calls during a run share the next run, which starts after it. */
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
   * Resolves after a run that started after this call. Calls of the same turn share one run.
   *
   * Rejects if that run fails. Later runs still take place, also if the task throws before it returns a promise.
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
