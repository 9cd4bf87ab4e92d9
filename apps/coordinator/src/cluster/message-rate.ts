/** `MessageRate` limits the broadcasts that are accepted per second, of all peers together. Beyond, messages are dropped. */
export class MessageRate {
  readonly #maxPerSecond: number;
  #startedAt = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(maxPerSecond: number) {
    this.#maxPerSecond = maxPerSecond;
  }

  /** Counts a message. False: drop the message. `now`: by a monotonic clock, in milliseconds. */
  admit(now: number): boolean {
    if (now - this.#startedAt >= 1000) {
      this.#startedAt = now;
      this.#count = 0;
    }
    return ++this.#count <= this.#maxPerSecond;
  }
}
