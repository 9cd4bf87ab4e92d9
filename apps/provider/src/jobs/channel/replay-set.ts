/** `ReplaySet` detects replays: stores job ids, or encapsulated keys and nonces of sealed requests, until they expire. */

/** A job adds one value for minutes. A sealed request adds two values for at most an hour. */
const MAX_VALUES = 131_072;
/** Interval between two sweeps of a set that is not full, in milliseconds. */
const SWEEP_EVERY_MS = 60_000;

export class ReplaySet {
  /** Value → time in milliseconds after which the value may be removed. */
  readonly #values = new Map<string, number>();
  /** Values that expired before this time were removed. Never decreases, even if the clock is set back. */
  #sweptAt = 0;

  constructor(private readonly maxValues = MAX_VALUES) {}

  get size(): number {
    return this.#values.size;
  }

  has(value: string): boolean {
    return this.#values.has(value);
  }

  /**
   * Adds all values or none. Returns `replayed` if a value is known, and `expired` if one may have been removed, because the clock was
   * ahead. When `full`, the request must be refused.
   */
  add(
    values: readonly string[],
    { until, now }: { readonly until: number; readonly now: number },
  ): 'added' | 'replayed' | 'expired' | 'full' {
    if (values.some((value) => this.#values.has(value))) return 'replayed';
    if (until < this.#sweptAt) return 'expired';
    if (now - this.#sweptAt >= SWEEP_EVERY_MS || this.#values.size + values.length > this.maxValues) this.#sweep(now);
    if (this.#values.size + values.length > this.maxValues) return 'full';
    for (const value of values) this.#values.set(value, until);
    return 'added';
  }

  #sweep(now: number): void {
    this.#sweptAt = Math.max(this.#sweptAt, now);
    for (const [value, until] of this.#values) if (until < this.#sweptAt) this.#values.delete(value);
  }
}
