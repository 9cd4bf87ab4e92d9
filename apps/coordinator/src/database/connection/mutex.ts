/** A lock for asynchronous work: one holder at a time, and the others in the order in which they came. */
export class Mutex {
  #held = false;
  readonly #waiting: (() => void)[] = [];

  get isFree(): boolean {
    return !this.#held;
  }

  /** Resolves when the caller has the turn. Every caller passes it on. */
  async acquire(): Promise<void> {
    if (!this.#held) {
      this.#held = true;
      return;
    }
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#held = false;
    else next();
  }
}
