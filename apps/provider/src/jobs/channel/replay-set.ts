/** `ReplaySet` detects repeated requests: stores job ids, or encapsulated keys and nonces of sealed requests, until they expire. */

/** A job adds one value for minutes. A sealed request adds two values for at most an hour. */
const MAX_VALUES = 131_072;
/** Minimum time between two sweeps of a set that is not full, in milliseconds. */
const SWEEP_EVERY_MS = 60_000;

export class ReplaySet {
  /** Time in milliseconds after which a value may be removed. */
  readonly #expiryByValue = new Map<string, number>();
  /** Values that expired before this time were removed. Never decreases, even if the clock is set back. */
  #sweptAt = 0;

  constructor(private readonly maxValues = MAX_VALUES) {}

  get size(): number {
    return this.#expiryByValue.size;
  }

  has(value: string): boolean {
    return this.#expiryByValue.has(value);
  }

  /**
   * Adds all values or none. `replayed`: a value is known. `expired`: a value may have been known and removed, because `until` is before
   * an earlier sweep (the clock was ahead). `full`: there is no room.
   */
  add(
    values: readonly string[],
    { until, now }: { readonly until: number; readonly now: number },
  ): 'added' | 'replayed' | 'expired' | 'full' {
    if (values.some((value) => this.#expiryByValue.has(value))) return 'replayed';
    if (until < this.#sweptAt) return 'expired';
    if (now - this.#sweptAt >= SWEEP_EVERY_MS || this.#expiryByValue.size + values.length > this.maxValues) this.#sweep(now);
    if (this.#expiryByValue.size + values.length > this.maxValues) return 'full';
    for (const value of values) this.#expiryByValue.set(value, until);
    return 'added';
  }

  #sweep(now: number): void {
    this.#sweptAt = Math.max(this.#sweptAt, now);
    for (const [value, until] of this.#expiryByValue) if (until < this.#sweptAt) this.#expiryByValue.delete(value);
  }
}
