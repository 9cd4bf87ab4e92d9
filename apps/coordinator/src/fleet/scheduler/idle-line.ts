/** Machines in the order in which they had work last. Each step takes the same short time, however many there are. */

export interface Idler {
  /** Since when it could have had work and had none, in milliseconds. Valid while `listed`. */
  idleSince: number;
  listed: boolean;
  before: this | null;
  after: this | null;
}

export class IdleLine<T extends Idler> {
  /** Without work for longest. */
  #first: T | null = null;
  #last: T | null = null;

  /** Those without work since `latest` or before, in milliseconds, as they are at this moment. */
  until(latest: number): T[] {
    const found: T[] = [];
    for (let one = this.#first; one !== null && one.idleSince <= latest; one = one.after) found.push(one);
    return found;
  }

  /** The clock was set back to `now`: nobody is without work since a moment that has not come. */
  notAfter(now: number): void {
    for (let one = this.#last; one !== null && one.idleSince > now; one = one.before) one.idleSince = now;
  }

  /** Puts one at the end. `now`, in milliseconds, goes back only with {@link notAfter}. */
  add(one: T, now: number): void {
    one.idleSince = now;
    one.listed = true;
    one.before = this.#last;
    one.after = null;
    if (this.#last === null) this.#first = one;
    else this.#last.after = one;
    this.#last = one;
  }

  /** Takes one out, if it is in. */
  remove(one: T): void {
    if (!one.listed) return;
    if (one.before === null) this.#first = one.after;
    else one.before.after = one.after;
    if (one.after === null) this.#last = one.before;
    else one.after.before = one.before;
    one.listed = false;
    one.before = null;
    one.after = null;
  }
}
