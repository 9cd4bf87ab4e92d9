/** Rows per stream of a batch: isolated sequences get a second row. */
import { expect, test } from 'vitest';
import { batchRows } from '../../src/engine/process/decoding/repeatability.js';

test.each([
  ['one stream', [3], 2, [2]],
  ['one stream that may be alone', [3], 1, [1]],
  ['neighbours', [0, 1, 2], 2, [1, 1, 1]],
  ['a gap', [0, 2], 2, [2, 2]],
  ['gaps on both sides of neighbours', [0, 2, 3, 7], 2, [2, 1, 1, 2]],
  ['gaps where each may be alone', [0, 2, 3], 1, [1, 1, 1]],
] as const)('%s', (_what, ids, min, expected) => {
  expect(batchRows(ids, min)).toEqual(expected);
});
