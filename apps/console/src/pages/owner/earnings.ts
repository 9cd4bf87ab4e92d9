/** Earnings per day and machine as totals, chart series and CSV. */
import type { ConsoleEarningDays } from '@inference/formats';
import { type DayRange, eachDay } from '../../features/account/utc-days.js';

export type EarningDay = ConsoleEarningDays['data'][number];

interface EarningSums {
  readonly earned: number;
  readonly jobs: number;
  readonly tokens: number;
}

export function sumOf(rows: readonly EarningDay[]): EarningSums {
  return {
    earned: rows.reduce((sum, row) => sum + row.earned_micro_usd, 0),
    jobs: rows.reduce((sum, row) => sum + row.jobs, 0),
    tokens: rows.reduce((sum, row) => sum + row.tokens, 0),
  };
}

interface EarningSeries {
  readonly id: string;
  /** Micro-USD per day of the range. */
  readonly values: readonly number[];
}

/** One series per machine, highest earnings first; machines beyond `max` share the series `others`. */
export function seriesOf(rows: readonly EarningDay[], range: DayRange, max: number): readonly EarningSeries[] {
  const days = eachDay(range);
  const indexByDay = new Map(days.map((day, index) => [day, index]));
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(row.provider_id, (totals.get(row.provider_id) ?? 0) + row.earned_micro_usd);
  const ranked = [...totals].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([id]) => id);
  const own = new Set(ranked.length <= max ? ranked : ranked.slice(0, max - 1));
  const series = new Map<string, number[]>([...own].map((id) => [id, days.map(() => 0)]));
  if (own.size < ranked.length)
    series.set(
      OTHERS,
      days.map(() => 0),
    );
  for (const row of rows) {
    const values = series.get(own.has(row.provider_id) ? row.provider_id : OTHERS);
    const index = indexByDay.get(row.day);
    if (values !== undefined && index !== undefined) values[index] = (values[index] ?? 0) + row.earned_micro_usd;
  }
  return [...series].map(([id, values]) => ({ id, values }));
}

/** Series of machines without their own. Never equal to a provider id. */
export const OTHERS = 'others';

export function earningsCsv(rows: readonly EarningDay[], nameOf: (providerId: string) => string): string {
  return csvOf([
    ['day', 'machine', 'provider_id', 'jobs', 'tokens', 'earned_micro_usd'],
    ...rows.map((row) => [row.day, nameOf(row.provider_id), row.provider_id, row.jobs, row.tokens, row.earned_micro_usd]),
  ]);
}

function csvOf(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function cell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
