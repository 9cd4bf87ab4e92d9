/** Daily usage by model as chart series and totals. Days without usage are zero, and small models share one series. */
import type { ConsoleUsageDays } from '@inference/formats';
import { dailySeries, sum } from '../../features/account/daily-series.js';
import { eachDay } from '../../features/account/utc-days.js';
import { COLOUR_COUNT, OTHERS_COLOUR, seriesColours } from '../../ui/chart/series-colours.js';

export type Measure = 'cost' | 'requests' | 'tokens' | 'images';

interface UsageSeries {
  readonly name: string;
  /** Index: day. */
  readonly values: readonly number[];
  readonly colour: number;
}

interface UsageChart {
  readonly days: readonly string[];
  /** Largest total first. */
  readonly series: readonly UsageSeries[];
}

type UsageDay = ConsoleUsageDays['data'][number];

/** Models with their own colour; the others share one series. */
export const MAX_SERIES = COLOUR_COUNT;
export const OTHERS = 'Other models';

/** `models`: models of the range under any filter; each keeps its colour whichever are shown. */
export function usageChart(usage: ConsoleUsageDays, measure: Measure, models: readonly string[] = modelsUsed(usage.data)): UsageChart {
  const series = dailySeries(
    usage.data.filter((row) => measured(row, measure) > 0),
    usage,
    { group: ({ model }) => model, value: (row) => measured(row, measure), max: MAX_SERIES, others: OTHERS },
  );
  const own = series.map(({ id }) => id).filter((id) => id !== OTHERS);
  const colours = seriesColours(own, models);
  return {
    days: eachDay(usage),
    series: series.map(({ id, values }) => ({ name: id, values, colour: colours.get(id) ?? OTHERS_COLOUR })),
  };
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
