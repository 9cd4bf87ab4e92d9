/** Seeded random numbers and the simulator's distributions. */

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number in [0, 1): mulberry32. */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };

  happens(probability: number): boolean {
    return this.next() < probability;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  below(count: number): number {
    return Math.floor(count * this.next());
  }

  oneOf<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  /** Half of the values are below `median`; `sigma` is the deviation of their logarithm. */
  logNormal(median: number, sigma: number): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
    return median * Math.exp(sigma * normal);
  }
}

/** Draws an index with chances in proportion to the weights. */
export class Weighted {
  readonly #sums: Float64Array;

  constructor(weights: readonly number[]) {
    let sum = 0;
    this.#sums = Float64Array.from(weights, (weight) => {
      sum += weight;
      return sum;
    });
  }

  draw(chance: Random): number {
    const sums = this.#sums;
    const wanted = chance.next() * (sums.at(-1) ?? 0);
    let [low, high] = [0, sums.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] as number) > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Zipf weights: rank r has weight 1 / r^exponent. */
export function zipf(count: number, exponent: number): number[] {
  return Array.from({ length: count }, (_, rank) => (rank + 1) ** -exponent);
}
