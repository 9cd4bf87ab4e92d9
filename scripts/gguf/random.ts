/** Seeded random weights, generated as a stream, so that no large tensor is in memory whole. */

const CHUNK = 1 << 20;

/** Uniform values with mean 0 and the given standard deviation. */
export function* randomChunks(count: number, deviation: number, seed: number): Iterable<Float32Array> {
  const chunk = new Float32Array(Math.min(count, CHUNK));
  const width = deviation * Math.sqrt(12);
  let state = seed >>> 0;
  for (let done = 0; done < count; done += chunk.length) {
    const part = chunk.subarray(0, count - done);
    for (let index = 0; index < part.length; index++) {
      // mulberry32
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      part[index] = (((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296 - 0.5) * width;
    }
    yield part;
  }
}
