/** `RepeatedTask` runs an asynchronous task periodically. A period that ends during a run starts no second run. */
export class RepeatedTask {
  readonly #task: () => Promise<unknown>;
  readonly #onError: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;

  /** The timer first fires after one period, and does not keep the process alive. */
  constructor(everyMs: number, task: () => Promise<unknown>, onError: (error: unknown) => void) {
    this.#task = task;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.run(), everyMs);
    this.#timer.unref();
  }

  /** Runs the task now, or waits for the current run. A rejection of the task goes to `onError`. */
  run(): Promise<void> {
    this.#running ??= this.#task()
      .then(() => {})
      .catch(this.#onError)
      .finally(() => {
        this.#running = null;
      });
    return this.#running;
  }

  /** Stops the timer, and waits for the current run. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }
}
