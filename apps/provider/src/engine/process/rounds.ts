/**
 * Lets the streams of one context step together: a stream that has its token waits until all have theirs, and then the
 * next batch holds all of them. Without this the stream that is sampled last always misses the next batch (measured:
 * batches of one at two streams, of three at four). A stream that joins waits for the running round to end.
 */

/** Tokens that one batch of the context can hold. */
const BATCH_TOKENS = 512;
/** Least part of a prompt that is worth a batch. */
const LEAST_PART_TOKENS = 32;

export class Rounds {
  /** Streams in the running round that have not arrived. */
  #underWay = 0;
  #waiting: (() => void)[] = [];
  /** Streams that still decode their prompts. */
  prefilling = 0;

  /** Takes part from the next round on. Null: it begins now. */
  enter(): Promise<void> | null {
    if (this.#underWay > 0) return this.#wait();
    this.#underWay = 1;
    return null;
  }

  /** This stream's part of the round is done, and it takes part in the next one. Null: that begins now. */
  again(): Promise<void> | null {
    if (this.#underWay === 1 && this.#waiting.length === 0) return null;
    const gate = this.#wait();
    this.leave();
    return gate;
  }

  /** This stream's part of the round is done, and it takes part in no other. */
  leave(): void {
    this.#underWay -= 1;
    if (this.#underWay > 0) return;
    const released = this.#waiting;
    this.#waiting = [];
    this.#underWay = released.length;
    for (const release of released) release();
  }

  /** How much of a prompt to decode in one round, so that all streams fit into one batch. */
  partTokens(): number {
    const decoding = this.#underWay + this.#waiting.length;
    return Math.max(LEAST_PART_TOKENS, Math.floor((BATCH_TOKENS - decoding) / Math.max(1, this.prefilling)));
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
