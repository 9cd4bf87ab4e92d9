import { expect, it } from 'vitest';
import { readUsd, typedUsd, wholeCents } from '../src/pages/usd.js';

it('dollars become micro-USD by moving digits', () => {
  const micro = (text: string, places: 2 | 6 = 2) => {
    const typed = readUsd(text, places);
    return typed.kind === 'amount' ? typed.microUsd : typed.problem;
  };
  expect(micro('5')).toBe(5_000_000);
  expect(micro(' $12.5 ')).toBe(12_500_000);
  expect(micro('0.29')).toBe(290_000);
  expect(micro('999999999.99')).toBe(999_999_999_990_000);
  expect(micro('0.000001', 6)).toBe(1);
  expect(micro('1.000001')).toMatch(/whole cents/);
  expect(micro('1.0000001', 6)).toMatch(/smallest/);
  for (const text of ['', '.', '.5', '5.', '-5', '1e3', '1,000', '0x10', 'five', '٥'])
    expect([text, micro(text)]).toEqual([text, expect.any(String)]);
  expect(micro('1000000000')).toMatch(/more than there can be/);
});

it('an amount is typed as it is read', () => {
  for (const amount of [0, 1, 10_000, 1_000_000, 12_340_000, 999_999_999_990_000, 123_456]) {
    expect(readUsd(typedUsd(amount), 6)).toEqual({ kind: 'amount', microUsd: amount });
  }
  expect(typedUsd(12_500_000)).toBe('12.50');
  expect(wholeCents(1_239_999)).toBe(1_230_000);
});
