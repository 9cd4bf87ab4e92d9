/** A moment in which a provider that said it is full is left alone. */
export class HoldOff {
  readonly #now: () => number;
  readonly #onOver: () => void;
  #until = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(now: () => number, onOver: () => void) {
    this.#now = now;
    this.#onOver = onOver;
  }

  /** When it ends or ended, in milliseconds; 0 before the first. */
  get until(): number {
    return this.#until;
  }

  begin(ms: number): void {
    this.#until = this.#now() + ms;
    this.stop();
    this.#timer = setTimeout(this.#onOver, ms + 1);
  }

  /** Its end is told to nobody any more. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}
