/** `Noise`: normally distributed numbers from a seed, by the generator xoshiro128** (Blackman and Vigna). The same on every machine. */
import { createHash } from 'node:crypto';

export class Noise {
  readonly #state: Uint32Array;
  /** Second number of a Box-Muller pair, not returned yet. */
  #second: number | null = null;

  constructor(seed: string) {
    const digest = createHash('sha256').update(`image noise ${seed}`).digest();
    this.#state = Uint32Array.from({ length: 4 }, (_, index) => digest.readUInt32LE(4 * index));
  }

  /** The next number, of mean 0 and variance 1 (Box and Muller). */
  next(): number {
    if (this.#second !== null) {
      const second = this.#second;
      this.#second = null;
      return second;
    }
    // Above 0, so the logarithm is finite.
    const radius = Math.sqrt(-2 * Math.log((this.#nextWord() + 1) / 2 ** 32));
    const angle = (2 * Math.PI * this.#nextWord()) / 2 ** 32;
    this.#second = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  fill(values: Float32Array, scale: number): Float32Array {
    for (let index = 0; index < values.length; index++) values[index] = scale * this.next();
    return values;
  }

  #nextWord(): number {
    const state = this.#state;
    const [a, b, c, d] = state as unknown as [number, number, number, number];
    const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0;
    const fourth = d ^ b;
    const third = c ^ a;
    state[1] = b ^ third;
    state[0] = a ^ fourth;
    state[2] = third ^ (b << 9);
    state[3] = rotateLeft(fourth, 11);
    return result;
  }
}

function rotateLeft(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by));
}
