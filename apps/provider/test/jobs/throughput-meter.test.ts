/** Measured throughput of a stream. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ThroughputMeter } from '../../src/jobs/answer/throughput-meter.js';

test('prefill and decode rates are separate, and null for too few tokens', async () => {
  const pace = new ThroughputMeter();
  expect([pace.tokensPerSecond(), pace.promptTokensPerSecond(1000)]).toEqual([null, null]);
  await delay(20);
  pace.count(1);
  expect(pace.promptTokensPerSecond(63)).toBeNull();
  const prefill = pace.promptTokensPerSecond(1000) ?? 0;
  expect(prefill).toBeGreaterThan(0);
  expect(prefill).toBeLessThan(1000 / 0.019);
  await delay(20);
  pace.count(8);
  expect(pace.tokensPerSecond()).toBeNull();
  pace.count(9);
  expect(pace.tokensPerSecond()).toBeLessThan(8 / 0.019);
  // Later tokens are no part of the prefill time.
  expect(pace.promptTokensPerSecond(1000)).toBe(prefill);
});
