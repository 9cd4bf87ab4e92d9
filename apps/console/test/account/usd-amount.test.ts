import { describe, expect, it } from 'vitest';
import { floorToCents, formatUsdInput, parseUsd } from '../../src/features/account/usd-amount.js';

const amount = (text: string, places: 2 | 6 = 2): number | string => {
  const read = parseUsd(text, places);
  return read.kind === 'amount' ? read.microUsd : read.problem;
};

describe('amounts that people type', () => {
  it.each([
    ['1', 1_000_000],
    ['$5', 5_000_000],
    [' $ 12.5 ', 12_500_000],
    ['0.07', 70_000],
    ['4.35', 4_350_000],
    ['1000000', 1_000_000_000_000],
    ['019.99', 19_990_000],
    ['7.', 7_000_000],
  ])('reads %s exactly', (text, microUsd) => {
    expect(amount(text)).toBe(microUsd);
  });

  it('round-trips every number of cents', () => {
    for (let cents = 1; cents < 20_000; cents++) {
      const text = `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
      expect(amount(text)).toBe(cents * 10_000);
    }
  });

  it.each(['', '  ', '-1', '1e3', '0', '0.00', '1.005', '1,000', 'ten', '1000001', '١', '0x10', '.5', '1 2', 'Infinity'])(
    'refuses %j with a sentence',
    (text) => {
      expect(amount(text)).toMatch(/[a-z].*\.$/);
    },
  );

  it('accepts fractions of a cent with six places', () => {
    expect(amount('0.000001', 6)).toBe(1);
    expect(amount('1.234567', 6)).toBe(1_234_567);
    expect(amount('1.2345678', 6)).toMatch(/smallest/);
  });

  it('formats an amount as typed, and reads it back', () => {
    expect([1, 10_000, 12_500_000, 5_000_000, 1_234_567].map(formatUsdInput)).toEqual(['0.000001', '0.01', '12.50', '5', '1.234567']);
    for (const microUsd of [1, 99, 10_000, 123_456_789, 999_999_999_999]) expect(amount(formatUsdInput(microUsd), 6)).toBe(microUsd);
  });

  it('accepts zero only if allowed', () => {
    expect(parseUsd('0', 6, { zero: true })).toEqual({ kind: 'amount', microUsd: 0 });
    expect(parseUsd('', 6, { zero: true }).kind).toBe('refused');
    expect(formatUsdInput(0)).toBe('0');
  });

  it('rounds an amount down to whole cents', () => {
    expect([0, 9_999, 10_000, 1_239_999].map(floorToCents)).toEqual([0, 0, 10_000, 1_230_000]);
  });
});
