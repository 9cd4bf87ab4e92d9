import { expect, it } from 'vitest';
import { FreeRefusals, MAX_FREE_REFUSALS } from '../../../src/inference/request/free-refusals.js';

const HOUR_MS = 3_600_000;

it('limits the number of refusals per key and hour', () => {
  let now = 0;
  const refusals = new FreeRefusals(() => now);
  for (let index = 0; index < MAX_FREE_REFUSALS; index++) {
    expect(refusals.retryAfterSeconds('key')).toBeNull();
    refusals.count('key', 1);
  }
  now = HOUR_MS / 2;
  expect(refusals.retryAfterSeconds('key')).toBe(1800);
  expect(refusals.retryAfterSeconds('other')).toBeNull();
  now = HOUR_MS;
  expect(refusals.retryAfterSeconds('key')).toBeNull();
});

it('limits the bytes of refused requests', () => {
  const refusals = new FreeRefusals(() => 0);
  for (let index = 0; index < 8; index++) refusals.count('key', 8 * 1024 * 1024);
  expect(refusals.retryAfterSeconds('key')).toBe(3600);
});
