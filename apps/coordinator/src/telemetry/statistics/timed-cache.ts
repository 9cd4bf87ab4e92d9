/** `TimedCache` caches one computed value for a period. Concurrent callers share a computation. Failures are not cached. */
export interface Cached<T> {
  readonly value: T;
  /** Whole seconds since the computation began, as in the HTTP header `Age` (RFC 9111 section 5.1). */
  readonly ageSeconds: number;
}

export class TimedCache<T> {
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  readonly #compute: (now: number) => Promise<T>;
  #value: { readonly value: T; readonly computedAt: number } | null = null;
  #computation: Promise<Cached<T>> | null = null;

  constructor(options: { readonly maxAgeMs: number; readonly now: () => number; readonly make: (now: number) => Promise<T> }) {
    this.#maxAgeMs = options.maxAgeMs;
    this.#now = options.now;
    this.#compute = options.make;
  }

  async get(): Promise<Cached<T>> {
    if (this.#value !== null) {
      const age = this.#now() - this.#value.computedAt;
      // After the clock was set back, the age is negative.
      if (age >= 0 && age < this.#maxAgeMs) return { value: this.#value.value, ageSeconds: Math.floor(age / 1000) };
    }
    this.#computation ??= this.#recompute().finally(() => {
      this.#computation = null;
    });
    return this.#computation;
  }

  async #recompute(): Promise<Cached<T>> {
    const computedAt = this.#now();
    const value = await this.#compute(computedAt);
    this.#value = { value, computedAt };
    return { value, ageSeconds: 0 };
  }
}
