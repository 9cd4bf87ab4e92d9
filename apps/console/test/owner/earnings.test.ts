import { expect, it } from 'vitest';
import { eachDay, lastDays } from '../../src/features/account/utc-days.js';
import { type EarningDay, earningsCsv, forecastOf, OTHERS, seriesOf, sumOf } from '../../src/pages/owner/earnings.js';

const row = (day: string, provider_id: string, earned_micro_usd: number): EarningDay => ({
  day,
  provider_id,
  jobs: 1,
  tokens: 10,
  earned_micro_usd,
});
const RANGE = { from: '2026-02-27', to: '2026-03-02' };

it('days are counted in UTC, across months and years', () => {
  expect(eachDay(RANGE)).toEqual(['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02']);
  expect(lastDays(1, Date.parse('2026-01-01T00:00:00Z'))).toEqual({ from: '2026-01-01', to: '2026-01-01' });
  expect(lastDays(7, Date.parse('2026-01-03T23:59:59Z'))).toEqual({ from: '2025-12-28', to: '2026-01-03' });
});

it('every machine has a value for every day, highest earnings first', () => {
  const rows = [row('2026-02-27', 'a', 5), row('2026-03-01', 'b', 100), row('2026-03-02', 'a', 7)];
  expect(seriesOf(rows, RANGE, 6)).toEqual([
    { id: 'b', values: [0, 0, 100, 0] },
    { id: 'a', values: [5, 0, 0, 7] },
  ]);
  expect(sumOf(rows)).toEqual({ earned: 112, jobs: 3, tokens: 30 });
  expect(seriesOf([], RANGE, 6)).toEqual([]);
});

it('the forecast is the mean of the complete days since the first that earned', () => {
  const rows = [row('2026-02-28', 'a', 100), row('2026-02-28', 'b', 20), row('2026-03-02', 'a', 9999)];
  expect(forecastOf(rows, RANGE)).toBe(60 * 30);
  expect(forecastOf([row('2026-02-27', 'a', 0), ...rows], RANGE)).toBe(60 * 30);
  expect(forecastOf([row('2026-03-02', 'a', 9999)], RANGE)).toBeNull();
  expect(forecastOf([], RANGE)).toBeNull();
});

it('machines with the lowest earnings share a series, and the sum is preserved', () => {
  const rows = ['a', 'b', 'c', 'd'].map((id, index) => row('2026-03-01', id, 10 ** index));
  const series = seriesOf(rows, RANGE, 3);
  expect(series.map(({ id }) => id)).toEqual(['d', 'c', OTHERS]);
  expect(series.flatMap(({ values }) => values).reduce((sum, value) => sum + value, 0)).toBe(1111);
  expect(seriesOf(rows, RANGE, 4).map(({ id }) => id)).toEqual(['d', 'c', 'b', 'a']);
});

it('the CSV file has one line per row, and no name becomes a formula', () => {
  const names = new Map([
    ['a', '=HYPERLINK("http://evil")'],
    ['b', 'Mac, "the big one"'],
  ]);
  expect(earningsCsv([row('2026-03-01', 'a', 5), row('2026-03-01', 'b', 6)], (id) => names.get(id) ?? '')).toBe(
    [
      'day,machine,provider_id,jobs,tokens,earned_micro_usd',
      '2026-03-01,"\'=HYPERLINK(""http://evil"")",a,1,10,5',
      '2026-03-01,"Mac, ""the big one""",b,1,10,6',
      '',
    ].join('\r\n'),
  );
});
