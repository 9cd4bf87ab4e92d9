/** Daily usage by model as chart series and totals. Days without usage are zero, and small models share one series. */
import type { ConsoleUsageDays } from '@inference/formats';
import { dailySeries, sum } from '../../features/account/daily-series.js';
import { eachDay } from '../../features/account/utc-days.js';

export type Measure = 'cost' | 'requests' | 'tokens' | 'images';

interface UsageSeries {
  readonly name: string;
  /** Index: day. */
  readonly values: readonly number[];
}

interface UsageChart {
  readonly days: readonly string[];
  /** Largest total first. */
  readonly series: readonly UsageSeries[];
}

type UsageDay = ConsoleUsageDays['data'][number];

/** Models with their own colour; the others share one series. */
export const MAX_SERIES = 6;
export const OTHERS = 'Other models';

export function usageChart(usage: ConsoleUsageDays, measure: Measure): UsageChart {
  const series = dailySeries(
    usage.data.filter((row) => measured(row, measure) > 0),
    usage,
    { group: ({ model }) => model, value: (row) => measured(row, measure), max: MAX_SERIES, others: OTHERS },
  );
  return { days: eachDay(usage), series: series.map(({ id, values }) => ({ name: id, values })) };
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

/** Models used in the range, sorted by name. */
export function modelsUsed(rows: readonly UsageDay[]): string[] {
  return [...new Set(rows.map((row) => row.model))].sort();
}

function measured(row: UsageDay, measure: Measure): number {
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
