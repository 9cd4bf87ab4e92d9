import { describe, expect, test } from 'vitest';
import { encode, encodedBytes, toHalf } from './encode.js';
import { randomChunks } from './random.js';

describe('toHalf', () => {
  // IEEE 754-2019, binary16.
  test.each([
    [0, 0x0000],
    [-0, 0x8000],
    [1, 0x3c00],
    [-2, 0xc000],
    [65504, 0x7bff],
    [65536, 0x7c00],
    [Number.POSITIVE_INFINITY, 0x7c00],
    [2 ** -14, 0x0400],
    [2 ** -24, 0x0001],
    [2 ** -26, 0x0000],
    [1 / 3, 0x3555],
    [1 + 2 ** -10, 0x3c01],
  ])('%d is %i', (value, expected) => {
    expect(toHalf(value)).toBe(expected);
  });
});

test('Q8_0 keeps every weight within half a step of its block', () => {
  const [values = new Float32Array()] = randomChunks(4096, 0.05, 1);
  const bytes = Buffer.from(encode(values, 'Q8_0'));
  expect(bytes.length).toBe(encodedBytes(values.length, 'Q8_0'));
  for (let block = 0; block < values.length / 32; block++) {
    const largest = Math.max(...values.subarray(block * 32, block * 32 + 32).map(Math.abs));
    const step = largest / 127;
    for (let index = 0; index < 32; index++) {
      const decoded = bytes.readInt8(block * 34 + 2 + index) * step;
      expect(Math.abs(decoded - (values[block * 32 + index] ?? 0))).toBeLessThanOrEqual(step / 2 + 1e-6);
    }
  }
});

test('a block of zeros is all zeros in Q8_0', () => {
  expect([...encode(new Float32Array(32), 'Q8_0')]).toEqual(new Array(34).fill(0));
});
