/** `RepeatedTask` runs a task periodically, one run at a time. A period that ends during a run starts no other run. */
export class RepeatedTask {
  readonly #task: () => Promise<unknown>;
  readonly #onError: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;

  /** The first run starts after a period. The timer keeps no process running. */
  constructor(everyMs: number, task: () => Promise<unknown>, onError: (error: unknown) => void) {
    this.#task = task;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.run(), everyMs);
    this.#timer.unref();
  }

  /** Runs the task now, or waits for the current run. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#task()
      .then(() => {})
      .catch(this.#onError)
      .finally(() => {
        this.#running = null;
      });
    return this.#running;
  }

  /** Ends the periods, and waits for the current run. The database may be closed afterwards. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }
}
