/** `Random`: seeded random numbers from the distributions that the simulator needs. */
import { SeededRandom } from '../../test/support/seeded-random.js';

export class Random extends SeededRandom {
  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  /** Box-Muller method. `sigma` is the standard deviation of the values' natural logarithm. */
  logNormal(median: number, sigma: number): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
    return median * Math.exp(sigma * normal);
  }
}

/** Draws indexes with probabilities proportional to weights. */
export class WeightedIndex {
  readonly #sums: Float64Array;

  constructor(weights: readonly number[]) {
    let sum = 0;
    this.#sums = Float64Array.from(weights, (weight) => {
      sum += weight;
      return sum;
    });
  }

  draw(random: Random): number {
    const sums = this.#sums;
    const target = random.next() * (sums.at(-1) ?? 0);
    let [low, high] = [0, sums.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] as number) > target) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Zipf's law: the weight of rank r, from 1, is 1 / r^exponent. */
export function zipf(count: number, exponent: number): number[] {
  return Array.from({ length: count }, (_, rank) => (rank + 1) ** -exponent);
}
