/**
 * A limit on how long a peer may take. A process that was held up itself (by its host, a collection, a stop) finds its timers
 * due and what its peers sent meanwhile unread: that is read first, and may put the limit off, before anything is decided.
 */
export class Deadline {
  readonly #onOver: () => void;
  #timer: NodeJS.Timeout | null = null;
  #verdict: NodeJS.Immediate | null = null;

  /** Not set until {@link set} is called. */
  constructor(onOver: () => void) {
    this.#onOver = onOver;
  }

  /** From `set` to `clear`, also when it is over. */
  get isSet(): boolean {
    return this.#timer !== null;
  }

  /** Over in so many milliseconds, in place of what was set before. */
  set(ms: number): void {
    this.clear();
    // After the timers of a turn of the event loop come its sockets, and then what was put off to here.
    this.#timer = setTimeout(() => {
      this.#verdict = setImmediate(this.#onOver);
    }, ms);
  }

  /** Gives the whole time again, from now, also when it was over. */
  renew(): void {
    this.#withholdVerdict();
    this.#timer?.refresh();
  }

  clear(): void {
    this.#withholdVerdict();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #withholdVerdict(): void {
    if (this.#verdict !== null) clearImmediate(this.#verdict);
    this.#verdict = null;
  }
}
