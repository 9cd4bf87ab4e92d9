/**
 * The pause in which a provider that said it is full is left alone: a moment, and twice as long each time that it says so again when
 * the pause is over, up to a bound. An answer of it ends the pause, and the next one is a moment again.
 */
export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
}

export class Backoff {
  readonly #rules: BackoffOptions;
  readonly #now: () => number;
  readonly #onElapsed: () => void;
  #until = 0;
  #count = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(rules: BackoffOptions, now: () => number, onElapsed: () => void) {
    this.#rules = rules;
    this.#now = now;
    this.#onElapsed = onElapsed;
  }

  /** When it ends or ended, in milliseconds; 0 before the first, and when it was ended. */
  get until(): number {
    return this.#until;
  }

  /** Pauses since its last answer. */
  get count(): number {
    return this.#count;
  }

  /** It has said that it is full. What was on its way to it when a pause began says nothing new. */
  start(): void {
    if (this.#now() < this.#until) return;
    const { firstMs, maxMs } = this.#rules;
    const ms = Math.min(maxMs, firstMs * 2 ** Math.min(this.#count, 30));
    this.#count++;
    this.#until = this.#now() + ms;
    this.stop();
    this.#timer = setTimeout(this.#onElapsed, ms + 1);
  }

  /** It has answered. Whether a pause ended with that. */
  reset(): boolean {
    const wasPaused = this.#now() < this.#until;
    this.#count = 0;
    this.#until = 0;
    this.stop();
    return wasPaused;
  }

  /** Its end is told to nobody any more. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
