/** Providers by the time of their last work. Each operation takes constant time per provider. */

export interface IdleNode {
  /** Start of idleness, in milliseconds: eligible for work and without any. Valid while `isQueued`. */
  idleSince: number;
  isQueued: boolean;
  previous: this | null;
  next: this | null;
}

export class IdleQueue<T extends IdleNode> {
  /** Without work for longest. */
  #first: T | null = null;
  #last: T | null = null;

  /** Entries idle since `latest` or before, in milliseconds. The list is a copy. */
  idleSince(latest: number): T[] {
    const found: T[] = [];
    for (let one = this.#first; one !== null && one.idleSince <= latest; one = one.next) found.push(one);
    return found;
  }

  /** After a clock set back to `now`, limits all times to `now`. */
  clampTo(now: number): void {
    for (let one = this.#last; one !== null && one.idleSince > now; one = one.previous) one.idleSince = now;
  }

  /** Appends an entry. `now`, in milliseconds, may decrease only after {@link clampTo}. */
  add(one: T, now: number): void {
    one.idleSince = now;
    one.isQueued = true;
    one.previous = this.#last;
    one.next = null;
    if (this.#last === null) this.#first = one;
    else this.#last.next = one;
    this.#last = one;
  }

  /** Removes an entry, if queued. */
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
