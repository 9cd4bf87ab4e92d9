/** Lets a few tasks run at a time; the others wait their turn, in order. */
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
      // A place is handed on as it is.
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
