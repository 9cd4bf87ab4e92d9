/** `RecentCounts` counts codes, such as job outcomes, over the last minutes, for the operator page. */
import { MINUTE_MS } from '../time-units.js';

/** Maximum distinct codes per minute. Further codes count as `other`. */
const MAX_CODES = 100;
const OTHER = 'other';

export class RecentCounts {
  readonly #now: () => number;
  readonly #minutes: number;
  /** Counts by code. Key: minute since 1970, oldest first. */
  readonly #slices = new Map<number, Map<string, number>>();

  constructor(now: () => number, minutes: number) {
    this.#now = now;
    this.#minutes = minutes;
  }

  get minutes(): number {
    return this.#minutes;
  }

  add(code: string): void {
    const minute = this.#minute();
    let slice = this.#slices.get(minute);
    if (slice === undefined) {
      slice = new Map();
      this.#slices.set(minute, slice);
      this.#forget(minute);
    }
    const name = slice.has(code) || slice.size < MAX_CODES ? code : OTHER;
    slice.set(name, (slice.get(name) ?? 0) + 1);
  }

  /** Counts over all minutes, most frequent first. */
  read(): readonly { readonly code: string; readonly count: number }[] {
    this.#forget(this.#minute());
    const sums = new Map<string, number>();
    for (const slice of this.#slices.values()) for (const [code, count] of slice) sums.set(code, (sums.get(code) ?? 0) + count);
    return [...sums].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1));
  }

  #minute(): number {
    return Math.floor(this.#now() / MINUTE_MS);
  }

  #forget(minute: number): void {
    for (const old of this.#slices.keys()) if (old <= minute - this.#minutes) this.#slices.delete(old);
  }
}
