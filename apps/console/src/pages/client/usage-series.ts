/** Daily usage by model as chart series and totals. Days without usage are zero, and small models share one series. */
import type { ConsoleUsageDays } from '@inference/formats';
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
  const days = eachDay(usage);
  const indexByDay = new Map(days.map((day, index) => [day, index]));
  const byModel = new Map<string, number[]>();
  for (const row of usage.data) {
    const index = indexByDay.get(row.day);
    if (index === undefined) continue;
    const values = byModel.get(row.model) ?? days.map(() => 0);
    values[index] = (values[index] ?? 0) + measured(row, measure);
    byModel.set(row.model, values);
  }
  const ranked = [...byModel]
    .map(([name, values]) => ({ name, values }))
    .filter(({ values }) => sum(values) > 0)
    .sort((a, b) => sum(b.values) - sum(a.values) || a.name.localeCompare(b.name));
  if (ranked.length <= MAX_SERIES) return { days, series: ranked };
  const others = ranked.slice(MAX_SERIES - 1);
  const together = days.map((_, index) => sum(others.map(({ values }) => values[index] ?? 0)));
  return { days, series: [...ranked.slice(0, MAX_SERIES - 1), { name: OTHERS, values: together }] };
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

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
