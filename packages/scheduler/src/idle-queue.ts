/** Machines in the order in which they had work last. Each step takes the same short time, however many there are. */

export interface IdleNode {
  /** Since when it could have had work and had none, in milliseconds. Valid while `listed`. */
  idleSince: number;
  isQueued: boolean;
  previous: this | null;
  next: this | null;
}

export class IdleQueue<T extends IdleNode> {
  /** Without work for longest. */
  #first: T | null = null;
  #last: T | null = null;

  /** Those without work since `latest` or before, in milliseconds, as they are at this moment. */
  idleSince(latest: number): T[] {
    const found: T[] = [];
    for (let one = this.#first; one !== null && one.idleSince <= latest; one = one.next) found.push(one);
    return found;
  }

  /** The clock was set back to `now`: nobody is without work since a moment that has not come. */
  clampTo(now: number): void {
    for (let one = this.#last; one !== null && one.idleSince > now; one = one.previous) one.idleSince = now;
  }

  /** Puts one at the end. `now`, in milliseconds, goes back only with {@link notAfter}. */
  add(one: T, now: number): void {
    one.idleSince = now;
    one.isQueued = true;
    one.previous = this.#last;
    one.next = null;
    if (this.#last === null) this.#first = one;
    else this.#last.next = one;
    this.#last = one;
  }

  /** Takes one out, if it is in. */
  remove(one: T): void {
    if (!one.isQueued) return;
    if (one.previous === null) this.#first = one.next;
    else one.previous.next = one.next;
    if (one.next === null) this.#last = one.previous;
    else one.next.previous = one.previous;
    one.isQueued = false;
    one.previous = null;
    one.next = null;
  }
}
