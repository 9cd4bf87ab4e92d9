/** Seeded random generator (mulberry32) for randomized tests. A seed reproduces a failure. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Integer in [0, end). */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000) * end);
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256));
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
}

/** Copy with one flipped bit. */
export function withFlippedBit(bytes: Uint8Array, byte: number, bit = 0): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[byte] = (copy[byte] as number) ^ (1 << bit);
  return copy;
}
