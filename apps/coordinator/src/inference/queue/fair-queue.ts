/**
 * The requests that wait for one model, in an order that is fair between accounts: each account has a line of its own, and the
 * account that has been given the least work since it came is next. Someone's burst makes only their own line longer.
 */

export interface Queued {
  readonly accountId: string;
  /** What serving it is expected to take, in any unit that is the same for all. More than 0. */
  readonly cost: number;
}

interface Line<T> {
  readonly waiting: T[];
  /** Virtual time at which its next one is due. */
  due: number;
}

export class FairQueue<T extends Queued> {
  readonly #max: number;
  readonly #lines = new Map<string, Line<T>>();
  /** Accounts without a line whose last work is not yet forgotten: when they would be due again. */
  readonly #past = new Map<string, number>();
  #size = 0;
  /** Virtual time: how much work a line that was never empty has been given. */
  #time = 0;

  /** At most `most` wait at once. */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * How many would be served before a new one of this account, or after all others (null), if all cost the same and nobody else
   * came. With `counts`, only those of which it holds are looked at.
   */
  aheadOf(accountId: string | null, counts: ((item: T) => boolean) | null = null): number {
    const lengthOf = (waiting: readonly T[]): number => (counts === null ? waiting.length : waiting.filter(counts).length);
    const line = accountId === null ? undefined : this.#lines.get(accountId);
    const own = accountId === null ? Number.POSITIVE_INFINITY : lengthOf(line?.waiting ?? []);
    let ahead = 0;
    for (const { waiting } of this.#lines.values()) ahead += Math.min(lengthOf(waiting), own + 1);
    return ahead;
  }

  /** Whether it holds of anyone who waits. */
  some(holds: (item: T) => boolean): boolean {
    for (const { waiting } of this.#lines.values()) if (waiting.some(holds)) return true;
    return false;
  }

  /**
   * Takes one in. When the queue is full, the newest of the longest line has to go for it, and if that is its own line, it is
   * turned away itself. Gives who must be told that there is no room: itself, another, or null.
   */
  add(item: T): T | null {
    let displaced: T | null = null;
    if (this.#size >= this.#max) {
      const longest = this.#longest();
      if (longest === null || longest.waiting.length <= this.#waitingOf(item.accountId) + 1) return item;
      displaced = longest.waiting.at(-1) as T;
      this.remove(displaced);
    }
    const line = this.#lines.get(item.accountId);
    if (line !== undefined) line.waiting.push(item);
    else {
      const due = Math.max(this.#time, this.#past.get(item.accountId) ?? 0);
      this.#past.delete(item.accountId);
      this.#lines.set(item.accountId, { waiting: [item], due });
    }
    this.#size++;
    return displaced;
  }

  /** Takes one out that waits no longer, served or not. */
  remove(item: T): void {
    const line = this.#lines.get(item.accountId);
    const place = line?.waiting.indexOf(item) ?? -1;
    if (line === undefined || place === -1) return;
    line.waiting.splice(place, 1);
    this.#size--;
    if (line.waiting.length > 0) return;
    this.#lines.delete(item.accountId);
    if (line.due > this.#time) this.#past.set(item.accountId, line.due);
  }

  /** Takes one out that is served: its account is due later by what that costs. */
  served(item: T): void {
    const line = this.#lines.get(item.accountId);
    if (line === undefined || !line.waiting.includes(item)) return;
    this.#time = Math.max(this.#time, this.#firstDue());
    line.due = Math.max(line.due, this.#time) + item.cost;
    this.remove(item);
    for (const [accountId, due] of this.#past) if (due <= this.#time) this.#past.delete(accountId);
  }

  /** Everyone in the order in which they would be served if each could be. Those who come or go meanwhile change nothing of it. */
  *inOrder(): Generator<T> {
    const lines = [...this.#lines.values()].map(({ waiting, due }) => ({ waiting: [...waiting], due, next: 0 }));
    const start = this.#time;
    for (;;) {
      let first: (typeof lines)[number] | null = null;
      for (const line of lines) if (line.next < line.waiting.length && (first === null || line.due < first.due)) first = line;
      const item = first?.waiting[first.next];
      if (first === null || item === undefined) return;
      yield item;
      first.next++;
      first.due = Math.max(first.due, start) + item.cost;
    }
  }

  #waitingOf(accountId: string): number {
    return this.#lines.get(accountId)?.waiting.length ?? 0;
  }

  #longest(): Line<T> | null {
    let longest: Line<T> | null = null;
    for (const line of this.#lines.values()) if (longest === null || line.waiting.length > longest.waiting.length) longest = line;
    return longest;
  }

  #firstDue(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { due } of this.#lines.values()) first = Math.min(first, due);
    return first;
  }
}
