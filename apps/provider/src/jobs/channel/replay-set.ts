/**
 * `ReplaySet`: encapsulated keys and nonces of accepted sealed requests, so that each is accepted once. A value is retained until its
 * request could no longer pass the time checks. Memory suffices: sealing keys end with the session, so an old request cannot be opened
 * in a new session.
 */

/** Two values per request; requests live for at most an hour. */
const MAX_VALUES = 131_072;
/** Interval between two sweeps of a set that is not full, in milliseconds. */
const SWEEP_EVERY_MS = 60_000;

export class ReplaySet {
  /** Value → time in milliseconds after which the value may be forgotten. */
  readonly #values = new Map<string, number>();
  #sweptAt = 0;

  constructor(private readonly maxValues = MAX_VALUES) {}

  get size(): number {
    return this.#values.size;
  }

  /**
   * Adds all values or none. `replayed`: one of them is known. `full`: no value can be forgotten yet, so the request must be refused.
   */
  add(values: readonly string[], { until, now }: { readonly until: number; readonly now: number }): 'added' | 'replayed' | 'full' {
    if (values.some((value) => this.#values.has(value))) return 'replayed';
    if (now - this.#sweptAt >= SWEEP_EVERY_MS || this.#values.size + values.length > this.maxValues) this.#sweep(now);
    if (this.#values.size + values.length > this.maxValues) return 'full';
    for (const value of values) this.#values.set(value, until);
    return 'added';
  }

  #sweep(now: number): void {
    this.#sweptAt = now;
    for (const [value, until] of this.#values) if (until < now) this.#values.delete(value);
  }
}
