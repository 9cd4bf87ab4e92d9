import { expect, test } from 'vitest';
import { commonReceiptVersion, negotiateVersion, PROTOCOL_VERSIONS } from '../src/wire/version.js';

test.each([
  [[1], [1], 1],
  [[1, 2, 3], [2, 1], 2],
  [[3, 1], [1, 2, 3], 3],
  [[2], [1], null],
  [[], [1], null],
  [[1], [], null],
])('offered %j, spoken %j: %j', (offered, spoken, version) => {
  expect(negotiateVersion(offered, spoken)).toBe(version);
});

test.each([
  [
    [
      [2, 1],
      [2, 1],
    ],
    2,
  ],
  [[[2, 1], undefined], 1],
  [[undefined, [2, 1]], 1],
  [
    [
      [3, 2],
      [2, 1],
    ],
    2,
  ],
  [[[3], [3]], 1],
] as const)('of receipts, %j have version %i in common', (known, version) => {
  expect(commonReceiptVersion(...known)).toBe(version);
});

test('this build speaks with itself', () => {
  expect(negotiateVersion(PROTOCOL_VERSIONS)).toBe(PROTOCOL_VERSIONS[0]);
});
