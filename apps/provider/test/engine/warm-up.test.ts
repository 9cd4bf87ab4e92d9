import { expect, test } from 'vitest';
import { warmUp } from '../../src/engine/process/decoding/warm-up.js';
import type { NativeContext } from '../../src/engine/process/native.js';

// Engines are not tested with a warm-up: without a GPU, `gpu: auto` computes on all cores, which the tests share.
test('decodes one row, a few, and many with and without whole tiles, with tokens of the vocabulary, and leaves the context empty', async () => {
  const batches: number[][] = [];
  let cached = 0;
  const context = {
    initBatch: () => {},
    addToBatch: (_sequence: number, position: number, tokens: Uint32Array, withLogits: Uint32Array) => {
      expect(position).toBe(cached);
      batches.push([...tokens]);
      return withLogits;
    },
    decodeBatch: async () => {
      cached += batches.at(-1)?.length ?? 0;
    },
    disposeSequence: () => {
      cached = 0;
    },
  } as unknown as NativeContext;
  await warmUp(context, 10);
  expect(batches.map(({ length }) => length)).toEqual([1, 4, 33, 96]);
  expect(Math.max(...batches.flat())).toBe(9);
  expect(cached).toBe(0);
});

test('a GPU that cannot decode is explained to the owner', async () => {
  const context = {
    initBatch: () => {},
    addToBatch: () => Uint32Array.of(0),
    decodeBatch: () => Promise.reject(new Error('Eval has failed')),
  } as unknown as NativeContext;
  await expect(warmUp(context, 10)).rejects.toThrow(/smaller context/);
});
