/** `Semaphore` runs a limited number of tasks concurrently. Further tasks wait, first in, first out. */
export class Semaphore {
  readonly #max: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs the task when fewer than `max` others run. Settles as the task does. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#max) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      // The next task takes over this task's place, so `#running` stays the same.
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
