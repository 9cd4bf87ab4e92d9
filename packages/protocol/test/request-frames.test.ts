import { describe, expect, test } from 'vitest';
import { concatBytes } from '../src/bytes.js';
import { REQUEST_CHUNK_BYTES } from '../src/wire/limits.js';
import { RequestFrames } from '../src/wire/request-frames.js';
import { SeededRandom } from './seeded-random.js';

const OVERHEAD = 10;

/** Frames that consist of a zero header and the chunk; also records the flags. */
function framesOf(content: readonly Uint8Array[]) {
  const made: { readonly seq: number; readonly final: boolean }[] = [];
  const encode = (chunk: Uint8Array, seq: number, final: boolean): Uint8Array => {
    made.push({ seq, final });
    return concatBytes(new Uint8Array(OVERHEAD), chunk);
  };
  return { frames: RequestFrames.chunked({ content, overheadBytes: OVERHEAD, encode }), made };
}

describe('frames of a request', () => {
  test.each([
    [[0]],
    [[1]],
    [[REQUEST_CHUNK_BYTES]],
    [[REQUEST_CHUNK_BYTES + 1]],
    [[0, 5, 0]],
    [[REQUEST_CHUNK_BYTES - 1, 2, 3 * REQUEST_CHUNK_BYTES]],
    [[10, REQUEST_CHUNK_BYTES - 10, 7]],
  ])('of parts of %j bytes are made one by one, and have all content', (lengths) => {
    const random = new SeededRandom(5);
    const content = lengths.map((length) => random.bytes(length));
    const whole = concatBytes(...content);
    const { frames, made } = framesOf(content);
    const count = Math.max(1, Math.ceil(whole.length / REQUEST_CHUNK_BYTES));
    const taken: Uint8Array[] = [];
    for (let left = count; left > 0; left--) {
      expect([frames.count, made.length]).toEqual([left, count - left]);
      expect(frames.bytes).toBe(whole.length + count * OVERHEAD - taken.reduce((sum, { length }) => sum + length, 0));
      taken.push(frames.take() as Uint8Array);
    }
    expect([frames.take(), frames.count, frames.bytes]).toEqual([null, 0, 0]);
    expect(made).toEqual(taken.map((_, seq) => ({ seq, final: seq === count - 1 })));
    expect(Buffer.compare(concatBytes(...taken.map((frame) => frame.subarray(OVERHEAD))), whole)).toBe(0);
  });

  test('that are encoded already are taken in order, once', () => {
    const encoded = [Uint8Array.of(1, 2), Uint8Array.of(3)];
    const frames = RequestFrames.encoded(encoded);
    expect(frames.bytes).toBe(3);
    expect([...frames]).toEqual(encoded);
    expect([...frames]).toEqual([]);
  });
});
