/** Converts earnings per day and machine to totals, a forecast, chart series and CSV. */
import type { ConsoleEarningDays } from '@inference/formats';
import { dailySeries, sum } from '../../features/account/daily-series.js';
import { type DayRange, eachDay } from '../../features/account/utc-days.js';

export type EarningDay = ConsoleEarningDays['data'][number];

interface EarningSums {
  /** Micro-USD. */
  readonly earned: number;
  readonly jobs: number;
  readonly tokens: number;
}

export function sumOf(rows: readonly EarningDay[]): EarningSums {
  return {
    earned: sum(rows.map((row) => row.earned_micro_usd)),
    jobs: sum(rows.map((row) => row.jobs)),
    tokens: sum(rows.map((row) => row.tokens)),
  };
}

const FORECAST_DAYS = 30;

/**
 * Forecast for the next 30 days in micro-USD: 30 times the daily mean from the first day with earnings in `rows` to yesterday.
 *
 * `to` is today, whose earnings are incomplete. Null if no earlier day has earnings.
 */
export function forecastOf(rows: readonly EarningDay[], { to }: Pick<DayRange, 'to'>): number | null {
  const complete = rows.filter(({ day, earned_micro_usd }) => day < to && earned_micro_usd > 0);
  const [from] = complete.map(({ day }) => day).sort();
  if (from === undefined) return null;
  const days = eachDay({ from, to }).length - 1;
  return Math.round((sumOf(complete).earned / days) * FORECAST_DAYS);
}

/** A series per machine, highest earnings first. Of more than `max` machines, the last series, {@link OTHERS}, sums the rest. */
export function seriesOf(rows: readonly EarningDay[], range: DayRange, max: number) {
  return dailySeries(rows, range, {
    group: ({ provider_id }) => provider_id,
    value: ({ earned_micro_usd }) => earned_micro_usd,
    max,
    others: OTHERS,
  });
}

/** Id of the shared series. Never equal to a provider id. */
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
  // Spreadsheets evaluate text with one of these first characters as a formula. An apostrophe prevents this.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
