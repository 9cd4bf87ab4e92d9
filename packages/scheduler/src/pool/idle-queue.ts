/** `IdleQueue` is a linked list of idle entries, the longest idle first. Adding and removing take constant time. */

export interface IdleNode {
  /** Start of idleness, in milliseconds. Valid while `isQueued`. */
  idleSince: number;
  isQueued: boolean;
  previous: this | null;
  next: this | null;
}

export class IdleQueue<T extends IdleNode> {
  /** The longest idle. */
  #first: T | null = null;
  #last: T | null = null;

  /** A copy of the entries idle since `latest` or before, in milliseconds. */
  idleSince(latest: number): T[] {
    const found: T[] = [];
    for (let node = this.#first; node !== null && node.idleSince <= latest; node = node.next) found.push(node);
    return found;
  }

  /** After a clock set back to `now`, limits all times to `now`. */
  clampTo(now: number): void {
    for (let node = this.#last; node !== null && node.idleSince > now; node = node.previous) node.idleSince = now;
  }

  /** Appends an entry. `now`, in milliseconds, may decrease only after {@link clampTo}. */
  add(node: T, now: number): void {
    node.idleSince = now;
    node.isQueued = true;
    node.previous = this.#last;
    node.next = null;
    if (this.#last === null) this.#first = node;
    else this.#last.next = node;
    this.#last = node;
  }

  /** Removes an entry, if queued. */
  remove(node: T): void {
    if (!node.isQueued) return;
    if (node.previous === null) this.#first = node.next;
    else node.previous.next = node.next;
    if (node.next === null) this.#last = node.previous;
    else node.next.previous = node.previous;
    node.isQueued = false;
    node.previous = null;
    node.next = null;
  }
}
