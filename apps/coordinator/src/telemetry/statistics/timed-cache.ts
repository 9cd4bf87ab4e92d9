/** `TimedCache`: a value computed at most once per period, in one computation for all callers. Failures are not cached. */

export interface Cached<T> {
  readonly value: T;
  /** Whole seconds since the computation began; HTTP Age (RFC 9111 section 5.1). */
  readonly ageSeconds: number;
}

export class TimedCache<T> {
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  readonly #compute: (now: number) => Promise<T>;
  #value: { readonly value: T; readonly computedAt: number } | null = null;
  #making: Promise<Cached<T>> | null = null;

  constructor(options: { readonly maxAgeMs: number; readonly now: () => number; readonly make: (now: number) => Promise<T> }) {
    this.#maxAgeMs = options.maxAgeMs;
    this.#now = options.now;
    this.#compute = options.make;
  }

  /** Rejects when the computation fails; the next call tries again. */
  async get(): Promise<Cached<T>> {
    if (this.#value !== null) {
      const age = this.#now() - this.#value.computedAt;
      // A negative age means that the clock was set back; the value is then recomputed.
      if (age >= 0 && age < this.#maxAgeMs) return { value: this.#value.value, ageSeconds: Math.floor(age / 1000) };
    }
    this.#making ??= this.#remake().finally(() => {
      this.#making = null;
    });
    return this.#making;
  }

  async #remake(): Promise<Cached<T>> {
    const computedAt = this.#now();
    const value = await this.#compute(computedAt);
    this.#value = { value, computedAt };
    return { value, ageSeconds: 0 };
  }
}
