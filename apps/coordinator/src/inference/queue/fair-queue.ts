/** `FairQueue` orders the queued requests of one model fairly between accounts (start-time fair queuing, Goyal et al. 1996). */

export interface Queued {
  readonly accountId: string;
  /** Expected work, greater than 0. The unit only has to be the same for all items. */
  readonly cost: number;
}

/** The queued items of one account. Flow is the term of fair queuing. */
interface Flow<T> {
  readonly waiting: T[];
  /** Virtual time at which the next item is due. The earliest is served first. */
  due: number;
}

export class FairQueue<T extends Queued> {
  readonly #maxItems: number;
  /** Key: account id. */
  readonly #flows = new Map<string, Flow<T>>();
  /** Due times of accounts without queued items whose recently served work still delays them. Key: account id. */
  readonly #recentDue = new Map<string, number>();
  #size = 0;
  /** Virtual time: the work that an account would have got so far if it always had queued items. Unit of `Queued.cost`. */
  #time = 0;

  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Estimated number of items that are served before a new item of this account. For a null account, all items.
   *
   * `counts` selects the items to count. Null counts all.
   */
  aheadOf(accountId: string | null, counts: ((item: T) => boolean) | null = null): number {
    const lengthOf = (waiting: readonly T[]): number => (counts === null ? waiting.length : waiting.filter(counts).length);
    const flow = accountId === null ? undefined : this.#flows.get(accountId);
    const own = accountId === null ? Number.POSITIVE_INFINITY : lengthOf(flow?.waiting ?? []);
    let ahead = 0;
    for (const { waiting } of this.#flows.values()) ahead += Math.min(lengthOf(waiting), own + 1);
    return ahead;
  }

  count(matches: (item: T) => boolean): number {
    let count = 0;
    for (const { waiting } of this.#flows.values()) for (const item of waiting) if (matches(item)) count++;
    return count;
  }

  some(matches: (item: T) => boolean): boolean {
    for (const { waiting } of this.#flows.values()) if (waiting.some(matches)) return true;
    return false;
  }

  /** Adds an item. Returns null, or the item that the full queue drops: the last one of the longest flow, or the new item itself. */
  add(item: T): T | null {
    let displaced: T | null = null;
    if (this.#size >= this.#maxItems) {
      const longest = this.#longest();
      if (longest === null || longest.waiting.length <= this.#waitingOf(item.accountId) + 1) return item;
      displaced = longest.waiting.at(-1) as T;
      this.remove(displaced);
    }
    const flow = this.#flows.get(item.accountId);
    if (flow !== undefined) flow.waiting.push(item);
    else {
      const due = Math.max(this.#time, this.#recentDue.get(item.accountId) ?? 0);
      this.#recentDue.delete(item.accountId);
      this.#flows.set(item.accountId, { waiting: [item], due });
    }
    this.#size++;
    return displaced;
  }

  /** Removes an item without charging its account. */
  remove(item: T): void {
    const flow = this.#flows.get(item.accountId);
    const place = flow?.waiting.indexOf(item) ?? -1;
    if (flow === undefined || place === -1) return;
    flow.waiting.splice(place, 1);
    this.#size--;
    if (flow.waiting.length > 0) return;
    this.#flows.delete(item.accountId);
    if (flow.due > this.#time) this.#recentDue.set(item.accountId, flow.due);
  }

  /** Removes a served item, and delays its account's next item by the cost. */
  served(item: T): void {
    const flow = this.#flows.get(item.accountId);
    if (flow === undefined || !flow.waiting.includes(item)) return;
    this.#time = Math.max(this.#time, this.#firstDue());
    flow.due = Math.max(flow.due, this.#time) + item.cost;
    this.remove(item);
    for (const [accountId, due] of this.#recentDue) if (due <= this.#time) this.#recentDue.delete(accountId);
  }

  /** All items in the order of service. Changes during the iteration do not affect it. */
  *inOrder(): Generator<T> {
    const remaining = [...this.#flows.values()].map(({ waiting, due }) => ({ waiting: [...waiting], due, next: 0 }));
    const start = this.#time;
    for (;;) {
      let first: (typeof remaining)[number] | null = null;
      for (const flow of remaining) if (flow.next < flow.waiting.length && (first === null || flow.due < first.due)) first = flow;
      const item = first?.waiting[first.next];
      if (first === null || item === undefined) return;
      yield item;
      first.next++;
      first.due = Math.max(first.due, start) + item.cost;
    }
  }

  #waitingOf(accountId: string): number {
    return this.#flows.get(accountId)?.waiting.length ?? 0;
  }

  #longest(): Flow<T> | null {
    let longest: Flow<T> | null = null;
    for (const flow of this.#flows.values()) if (longest === null || flow.waiting.length > longest.waiting.length) longest = flow;
    return longest;
  }

  #firstDue(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { due } of this.#flows.values()) first = Math.min(first, due);
    return first;
  }
}
