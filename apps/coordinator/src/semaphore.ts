/** `Semaphore` runs a limited number of tasks at a time; others wait in order. */
export class Semaphore {
  readonly #max: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#max) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      // The permit passes to the next task.
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
