/** `IdleQueue`: idle entries of a pool, longest idle first. A doubly linked list, so that adding and removing take constant time. */

export interface IdleNode {
  /** Start of idleness, in milliseconds. Valid while `isQueued`. */
  idleSince: number;
  isQueued: boolean;
  previous: this | null;
  next: this | null;
}

export class IdleQueue<T extends IdleNode> {
  #first: T | null = null;
  #last: T | null = null;

  /** Entries that became idle at `latest` or earlier, in milliseconds. The array is a copy. */
  idleSince(latest: number): T[] {
    const found: T[] = [];
    for (let node = this.#first; node !== null && node.idleSince <= latest; node = node.next) found.push(node);
    return found;
  }

  /** Limits all times to `now`, after the clock was set back. */
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
