/** Statistics of a connection: weights of the newest models stay known when a provider often changes its models. */
import { expect, test } from 'vitest';
import { SessionStatistics } from '../../../src/providers/session/session-statistics.js';

const sha256 = 'ab'.repeat(32);

test('a new model replaces the least recently signed weights at the maximum of 64 models', () => {
  const statistics = new SessionStatistics();
  for (let number = 0; number < 64; number++) statistics.recordSignedWeights(`model-${number}`, sha256);
  const full = statistics.signedWeights;
  statistics.recordSignedWeights('model-64', sha256);
  expect(full.size).toBe(64);
  expect(statistics.signedWeights.size).toBe(64);
  expect(statistics.signedWeights.get('model-64')).toBe(sha256);
  expect(statistics.signedWeights.has('model-0')).toBe(false);
  expect(full.has('model-64')).toBe(false);
});

test('the weights of a model that still signs receipts stay stored', () => {
  const statistics = new SessionStatistics();
  for (let number = 0; number < 64; number++) statistics.recordSignedWeights(`model-${number}`, sha256);
  const full = statistics.signedWeights;
  statistics.recordSignedWeights('model-0', sha256);
  expect(statistics.signedWeights).toBe(full);
  statistics.recordSignedWeights('model-64', sha256);
  expect([0, 1].map((number) => statistics.signedWeights.has(`model-${number}`))).toEqual([true, false]);
});

test('a receipt without a hash removes the stored hash', () => {
  const statistics = new SessionStatistics();
  statistics.recordSignedWeights('model', sha256);
  statistics.recordSignedWeights('model', undefined);
  expect(statistics.signedWeights.has('model')).toBe(false);
});
