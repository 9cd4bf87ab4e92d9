/**
 * `Backoff`: pause in placement after a provider reported full slots. Part of `ProviderSession`.
 *
 * Consecutive reports double the pause. A verified answer ends it.
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

  /** End of the current or last pause, in milliseconds; 0 before the first one and after a reset. */
  get until(): number {
    return this.#until;
  }

  /** Number of pauses since the last verified answer. */
  get count(): number {
    return this.#count;
  }

  /** Starts a pause. No effect during a pause, because the report then concerns a job sent earlier. */
  start(): void {
    if (this.#now() < this.#until) return;
    const { firstMs, maxMs } = this.#rules;
    const ms = Math.min(maxMs, firstMs * 2 ** Math.min(this.#count, 30));
    this.#count++;
    this.#until = this.#now() + ms;
    this.stop();
    this.#timer = setTimeout(() => this.#end(), ms + 1);
  }

  /** Ends the pause when its timer fires. If the clock was set back meanwhile, `until` is still in the future. */
  #end(): void {
    this.#timer = null;
    this.#until = Math.min(this.#until, this.#now());
    this.#onElapsed();
  }

  /** Ends the pause after a verified answer. Returns whether a pause was in progress. */
  reset(): boolean {
    const wasPaused = this.#now() < this.#until;
    this.#count = 0;
    this.#until = 0;
    this.stop();
    return wasPaused;
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
