/** Seeded choices for property tests, so that a failure can be run again. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Mulberry32: a number from 0 up to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 up to, and not including, `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  /** A text of up to `most` of the fragments, one after the other. */
  text(fragments: readonly string[], max: number): string {
    let text = '';
    for (let left = this.below(max + 1); left > 0; left--) text += this.pick(fragments);
    return text;
  }

  /** The text cut into pieces of 0 to `longest` UTF-16 units, now and then in the middle of a surrogate pair. */
  cut(text: string, longest: number): string[] {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const length = this.below(longest + 1);
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    return pieces;
  }
}
