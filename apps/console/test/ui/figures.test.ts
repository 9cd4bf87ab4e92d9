import { describe, expect, it } from 'vitest';
import { formatDuration, formatUsd, formatUsdRounded } from '../../src/ui/display/figures.js';

describe('amounts', () => {
  it.each([
    [0, '$0.00'],
    [1, '$0.000001'],
    [10_000, '$0.01'],
    [1_500_000, '$1.50'],
    [1_234_567_890, '$1,234.56789'],
    [-250_000, '−$0.25'],
    [Number.MAX_SAFE_INTEGER, '$9,007,199,254.740991'],
  ])('%d micro-USD are %s', (microUsd, text) => {
    expect(formatUsd(microUsd)).toBe(text);
  });

  it.each([
    [1_234_567_890, '$1,234.56'],
    [1_999_999, '$1.99'],
    [-1_999_999, '−$1.99'],
    [999_999, '$0.999999'],
    [0, '$0.00'],
  ])('%d micro-USD are %s when rounded, never more than there is', (microUsd, text) => {
    expect(formatUsdRounded(microUsd)).toBe(text);
  });
});

describe('durations', () => {
  it.each([
    [0, '0 ms'],
    [850, '850 ms'],
    [1840, '1.8 s'],
    [59_949, '59.9 s'],
    [59_950, '1 min 0 s'],
    [125_000, '2 min 5 s'],
  ])('%d milliseconds are %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});
