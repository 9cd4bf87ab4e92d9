/** Values per day as chart series, one per group. Days without a value are zero. Pure. */
import { type DayRange, eachDay } from './utc-days.js';

interface DailySeries {
  readonly id: string;
  /** One per day of the range. */
  readonly values: readonly number[];
}

interface Grouping<Row> {
  readonly group: (row: Row) => string;
  readonly value: (row: Row) => number;
  /** Maximum number of series. If there are more groups, the smallest ones share the last series. */
  readonly max: number;
  /** Id of the shared series. */
  readonly others: string;
}

/** Largest total first. */
export function dailySeries<Row extends { readonly day: string }>(
  rows: readonly Row[],
  range: DayRange,
  { group, value, max, others }: Grouping<Row>,
): DailySeries[] {
  const days = eachDay(range);
  const indexByDay = new Map(days.map((day, index) => [day, index]));
  const byGroup = new Map<string, number[]>();
  for (const row of rows) {
    const index = indexByDay.get(row.day);
    if (index === undefined) continue;
    const values = byGroup.get(group(row)) ?? days.map(() => 0);
    values[index] = (values[index] ?? 0) + value(row);
    byGroup.set(group(row), values);
  }
  const ranked = [...byGroup]
    .map(([id, values]) => ({ id, values }))
    .sort((a, b) => sum(b.values) - sum(a.values) || a.id.localeCompare(b.id));
  if (ranked.length <= max) return ranked;
  const rest = ranked.slice(max - 1);
  const together = days.map((_, index) => sum(rest.map(({ values }) => values[index] ?? 0)));
  return [...ranked.slice(0, max - 1), { id: others, values: together }];
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
