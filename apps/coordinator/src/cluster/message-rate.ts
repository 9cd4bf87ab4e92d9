/** `MessageRate`: maximum broadcasts of one kind per second, from all peers together, so that a hostile peer cannot occupy the process. */
export class MessageRate {
  readonly #maxPerSecond: number;
  #startedAt = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(maxPerSecond: number) {
    this.#maxPerSecond = maxPerSecond;
  }

  /** Counts a message. False: the caller must drop it. `now`: monotonic, in milliseconds. */
  admit(now: number): boolean {
    if (now - this.#startedAt >= 1000) {
      this.#startedAt = now;
      this.#count = 0;
    }
    return ++this.#count <= this.#maxPerSecond;
  }
}
