/** `findRepeatability` notices kernels whose results depend on the number of rows in a draft's batch. Simulated, without a model. */
import { expect, test } from 'vitest';
import { findRepeatability } from '../../src/engine/process/decoding/repeatability.js';
import type { NativeContext, NativeSampler } from '../../src/engine/process/native.js';

interface Row {
  readonly sequence: number;
  readonly position: number;
  readonly token: number;
}

/** Logits depend on token and position. `inexact`: whether the row at an index of a batch with so many rows of a sequence differs. */
function contextOf(inexact: (rows: number, index: number) => boolean): NativeContext {
  let batch: Row[] = [];
  return {
    initBatch: () => {
      batch = [];
    },
    addToBatch: (sequence, position, tokens, withLogits) => {
      const start = batch.length;
      for (const [index, token] of tokens.entries()) batch.push({ sequence, position: position + index, token });
      return withLogits.map((index) => start + index);
    },
    decodeBatch: async () => {},
    sampleToken: (async (place: number) => {
      const { sequence, position, token } = batch[place] as Row;
      const own = batch.filter((row) => row.sequence === sequence);
      const difference = inexact(own.length, own.indexOf(batch[place] as Row)) ? 1e-6 : 0;
      return [token, undefined, undefined, [token, position + token / 1000 + difference], 1];
    }) as unknown as NativeContext['sampleToken'],
    disposeSequence: () => {},
    removeTokenCellsFromSequence: () => true,
    getSequenceKvCacheMinPosition: () => 0,
  };
}

const sampler: NativeSampler = { applyConfig: () => {}, dispose: () => {} };

function find(inexact: (rows: number, index: number) => boolean) {
  const shared = { samplers: { newSampler: () => sampler }, vocabularySize: 100, modelSize: 1e6, sequences: 2, mayShare: true };
  return findRepeatability({ ...shared, context: contextOf(inexact) });
}

test('exact kernels allow drafts', async () => {
  expect(await find(() => false)).toEqual({ minRows: 1, slice: 64, exactDrafts: true });
});

test.each([2, 3, 5, 8, 24])('a difference in batches of %i rows forbids drafts, in the first row as in the last', async (count) => {
  expect(await find((rows, index) => rows === count && index === 0)).toMatchObject({ minRows: 1, exactDrafts: false });
  expect(await find((rows, index) => rows === count && index === count - 1)).toMatchObject({ minRows: 1, exactDrafts: false });
});
