/**
 * The pause in which a provider that said it is full is left alone: a moment, and twice as long each time that it says so again when
 * the pause is over, up to a bound. An answer of it ends the pause, and the next one is a moment again.
 */
export interface HoldOffRules {
  readonly firstMs: number;
  readonly maxMs: number;
}

export class HoldOff {
  readonly #rules: HoldOffRules;
  readonly #now: () => number;
  readonly #onOver: () => void;
  #until = 0;
  #inARow = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(rules: HoldOffRules, now: () => number, onOver: () => void) {
    this.#rules = rules;
    this.#now = now;
    this.#onOver = onOver;
  }

  /** When it ends or ended, in milliseconds; 0 before the first, and when it was ended. */
  get until(): number {
    return this.#until;
  }

  /** Pauses since its last answer. */
  get inARow(): number {
    return this.#inARow;
  }

  /** It has said that it is full. What was on its way to it when a pause began says nothing new. */
  begin(): void {
    if (this.#now() < this.#until) return;
    const { firstMs, maxMs } = this.#rules;
    const ms = Math.min(maxMs, firstMs * 2 ** Math.min(this.#inARow, 30));
    this.#inARow++;
    this.#until = this.#now() + ms;
    this.stop();
    this.#timer = setTimeout(this.#onOver, ms + 1);
  }

  /** It has answered. Whether a pause ended with that. */
  end(): boolean {
    const wasHeldOff = this.#now() < this.#until;
    this.#inARow = 0;
    this.#until = 0;
    this.stop();
    return wasHeldOff;
  }

  /** Its end is told to nobody any more. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
