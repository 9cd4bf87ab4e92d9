/**
 * `Backoff`: pause of a provider that reported full slots. Part of `ProviderSession`.
 *
 * Further reports double the pause; a verified answer ends the pause.
 */
interface BackoffOptions {
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

  /** End of the current or last pause, in milliseconds; 0 before the first pause and after a reset. */
  get until(): number {
    return this.#until;
  }

  /** Pauses since the last verified answer. */
  get count(): number {
    return this.#count;
  }

  /** Starts a pause. Reports during a pause concern earlier jobs, and change nothing. */
  start(): void {
    if (this.#now() < this.#until) return;
    const { firstMs, maxMs } = this.#rules;
    const ms = Math.min(maxMs, firstMs * 2 ** Math.min(this.#count, 30));
    this.#count++;
    this.#until = this.#now() + ms;
    this.stop();
    this.#timer = setTimeout(this.#onElapsed, ms + 1);
  }

  /** Ends the pause after a verified answer. True: a pause was under way. */
  reset(): boolean {
    const wasPaused = this.#now() < this.#until;
    this.#count = 0;
    this.#until = 0;
    this.stop();
    return wasPaused;
  }

  /** Cancels the callback at the end of the pause. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
