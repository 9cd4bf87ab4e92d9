/**
 * Converts usage per day or hour to charts by model, and to totals. The axis of a chart extends from the first to the last bucket (day or
 * hour) in which the charted measure is above 0.
 */
import type { ConsoleUsageDays, ConsoleUsageHours } from '@inference/formats';
import { bucketSeries, sum } from '../../features/account/daily-series.js';
import { type DayRange, eachDay, eachHour, shortDay, shortHour } from '../../features/account/utc-days.js';
import { COLOUR_COUNT, OTHERS_COLOUR, seriesColours } from '../../ui/chart/series-colours.js';

export type Measure = 'cost' | 'requests' | 'tokens' | 'images';

interface UsageSeries {
  readonly name: string;
  /** Values in the order of the labels. */
  readonly values: readonly number[];
  readonly colour: number;
}

interface UsageChart {
  /** Display texts of the days or hours. */
  readonly labels: readonly string[];
  /** Largest total first; "Other models" last. */
  readonly series: readonly UsageSeries[];
}

type UsageDay = ConsoleUsageDays['data'][number];
type UsageHour = ConsoleUsageHours['data'][number];
type ModelUsage = Omit<UsageHour, 'hour'>;

/** Maximum number of series. If there are more models, those with the smallest totals share {@link OTHERS}. */
export const MAX_SERIES = COLOUR_COUNT;
export const OTHERS = 'Other models';

/** `models` determine the colours: all models used in the date range, also those filtered out. */
export function dailyChart(rows: readonly UsageDay[], measure: Measure, models: readonly string[] = modelsUsed(rows)): UsageChart {
  return chartOf(rows, measure, models, { of: ({ day }) => day, all: (from, to) => eachDay({ from, to }), label: shortDay });
}

/** Like {@link dailyChart}, but by hour. */
export function hourlyChart(rows: readonly UsageHour[], measure: Measure, models: readonly string[] = modelsUsed(rows)): UsageChart {
  return chartOf(rows, measure, models, { of: ({ hour }) => hour, all: eachHour, label: shortHour });
}

interface Buckets<Row> {
  readonly of: (row: Row) => string;
  readonly all: (first: string, last: string) => readonly string[];
  readonly label: (bucket: string) => string;
}

function chartOf<Row extends ModelUsage>(
  rows: readonly Row[],
  measure: Measure,
  models: readonly string[],
  buckets: Buckets<Row>,
): UsageChart {
  const shown = rows.filter((row) => measureOf(row, measure) > 0);
  const [first, last] = rangeOf(shown.map(buckets.of));
  if (first === undefined || last === undefined) return { labels: [], series: [] };
  const all = buckets.all(first, last);
  const series = bucketSeries(shown, all, buckets.of, {
    group: ({ model }) => model,
    value: (row) => measureOf(row, measure),
    max: MAX_SERIES,
    others: OTHERS,
  });
  const own = series.map(({ id }) => id).filter((id) => id !== OTHERS);
  const colours = seriesColours(own, models);
  return {
    labels: all.map(buckets.label),
    series: series.map(({ id, values }) => ({ name: id, values, colour: colours.get(id) ?? OTHERS_COLOUR })),
  };
}

/** First and last day with usage; null without usage. */
export function usedDays(rows: readonly UsageDay[]): DayRange | null {
  const [from, to] = rangeOf(rows.map(({ day }) => day));
  return from === undefined || to === undefined ? null : { from, to };
}

/** First and last bucket, undefined for an empty list. ISO 8601 texts sort by time. */
function rangeOf(buckets: readonly string[]): readonly [string | undefined, string | undefined] {
  const sorted = buckets.toSorted();
  return [sorted[0], sorted.at(-1)];
}

interface UsageTotals {
  readonly requests: number;
  readonly tokens: number;
  readonly images: number;
  readonly costMicroUsd: number;
}

export function usageTotals(rows: readonly UsageDay[]): UsageTotals {
  return {
    requests: sum(rows.map((row) => row.requests)),
    tokens: sum(rows.map((row) => row.prompt_tokens + row.completion_tokens)),
    images: sum(rows.map((row) => row.images)),
    costMicroUsd: sum(rows.map((row) => row.cost_micro_usd)),
  };
}

export function modelsUsed(rows: readonly ModelUsage[]): string[] {
  return [...new Set(rows.map((row) => row.model))].sort();
}

function measureOf(row: ModelUsage, measure: Measure): number {
  switch (measure) {
    case 'cost':
      return row.cost_micro_usd;
    case 'requests':
      return row.requests;
    case 'tokens':
      return row.prompt_tokens + row.completion_tokens;
    case 'images':
      return row.images;
  }
}
