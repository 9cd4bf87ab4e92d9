/**
 * One answer, made at most once per period: whoever asks while it is being made waits for the same making. An answer is
 * never older than the period when it is handed out, and a making that failed is not kept.
 */

export interface Cached<T> {
  readonly value: T;
  /** Whole seconds since the making began; what HTTP calls Age (RFC 9111 section 5.1). */
  readonly ageSeconds: number;
}

export class TimedCache<T> {
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  readonly #make: (now: number) => Promise<T>;
  #kept: { readonly value: T; readonly madeAt: number } | null = null;
  #making: Promise<Cached<T>> | null = null;

  constructor(options: { readonly maxAgeMs: number; readonly now: () => number; readonly make: (now: number) => Promise<T> }) {
    this.#maxAgeMs = options.maxAgeMs;
    this.#now = options.now;
    this.#make = options.make;
  }

  /** Rejects when the making fails; the next call tries again. */
  async get(): Promise<Cached<T>> {
    if (this.#kept !== null) {
      const age = this.#now() - this.#kept.madeAt;
      // A clock that was set back must not make an answer live longer.
      if (age >= 0 && age < this.#maxAgeMs) return { value: this.#kept.value, ageSeconds: Math.floor(age / 1000) };
    }
    this.#making ??= this.#remake().finally(() => {
      this.#making = null;
    });
    return this.#making;
  }

  async #remake(): Promise<Cached<T>> {
    const madeAt = this.#now();
    const value = await this.#make(madeAt);
    this.#kept = { value, madeAt };
    return { value, ageSeconds: 0 };
  }
}
