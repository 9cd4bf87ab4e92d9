import type { Hardware } from '@inference/protocol';
import { expect, test } from 'vitest';
import { ALWAYS_PLAUSIBLE_TPS, fastestRates, isPlausibleRate, MIN_RATE_SAMPLES, maxPlausibleRate } from '../../src/pool/plausible-rate.js';

const provider = (bandwidth_gbs: number): Hardware => ({ chip_family: 'M4', cpu_cores: 8, gpu_cores: 8, bandwidth_gbs });
const measured = (decodeTps: number, samples = MIN_RATE_SAMPLES, bandwidth = 100) => ({
  speed: { decodeTps, prefillTps: 1000, samples },
  hardware: provider(bandwidth),
});

/** A provider without a measured rate. */
const unmeasured = (bandwidth: number) => measured(10, 0, bandwidth);

test('a rate far beyond every measured provider is impossible', () => {
  expect(isPlausibleRate(8000, unmeasured(100), [measured(60), measured(40)])).toBe(false);
  expect(isPlausibleRate(900, unmeasured(100), [measured(60), measured(40)])).toBe(true);
  expect(isPlausibleRate(ALWAYS_PLAUSIBLE_TPS, unmeasured(100), [measured(1)])).toBe(true);
});

test('nothing is impossible before any measurement', () => {
  expect(isPlausibleRate(19_000, unmeasured(100), [])).toBe(true);
  expect(isPlausibleRate(19_000, unmeasured(100), [measured(5, MIN_RATE_SAMPLES - 1)])).toBe(true);
});

test('a provider with more memory bandwidth may be faster than the measured ones', () => {
  expect(isPlausibleRate(2000, unmeasured(800), [measured(20)])).toBe(true);
  expect(isPlausibleRate(2000, unmeasured(100), [measured(20)])).toBe(false);
  // A provider that reports no bandwidth is assumed to have a common one.
  expect(isPlausibleRate(2000, unmeasured(0), [measured(20)])).toBe(false);
});

test('providers that are slow on purpose do not make a small model on a new provider impossible', () => {
  const slow = [measured(0.5), measured(1)];
  expect(isPlausibleRate(400, unmeasured(400), slow)).toBe(true);
  expect(isPlausibleRate(4000, unmeasured(400), slow)).toBe(false);
  // Measurements of the provider itself take precedence.
  expect(isPlausibleRate(400, measured(8, MIN_RATE_SAMPLES, 400), slow)).toBe(false);
});

test('the highest plausible rate is the limit of plausible rates', () => {
  const references = [[], [measured(20)], [measured(60), measured(40, MIN_RATE_SAMPLES, 400)], [measured(0.5), measured(1)]];
  for (const rates of references) {
    for (const own of [unmeasured(100), unmeasured(0), unmeasured(800), measured(8, MIN_RATE_SAMPLES, 400)]) {
      const limit = maxPlausibleRate(own, fastestRates(rates));
      expect(isPlausibleRate(Math.min(limit, 1e9), own, rates)).toBe(true);
      if (Number.isFinite(limit)) expect(isPlausibleRate(limit * 1.001, own, rates)).toBe(false);
      else expect(isPlausibleRate(1e9, own, rates)).toBe(true);
    }
  }
});
