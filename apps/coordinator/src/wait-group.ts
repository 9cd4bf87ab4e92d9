/** `WaitGroup` counts running operations, so that a shutdown can wait until none runs. Modelled on Go's `sync.WaitGroup`. */
export class WaitGroup {
  #count = 0;
  readonly #waiting: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  add(): void {
    this.#count++;
  }

  /** Ends one operation. Must be called once per `add`. */
  done(): void {
    this.#count--;
    if (this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves when the count is 0, at once if no operation runs. */
  async wait(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}
