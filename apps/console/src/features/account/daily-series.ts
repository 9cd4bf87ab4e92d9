/** `dailySeries` and `bucketSeries`: chart series that sum rows per day or hour, one per group, such as a model. */
import { type DayRange, eachDay } from './utc-days.js';

interface BucketSeries {
  readonly id: string;
  /** Sum per bucket (a day or hour); 0 without rows. */
  readonly values: readonly number[];
}

interface Grouping<Row> {
  readonly group: (row: Row) => string;
  readonly value: (row: Row) => number;
  /** Maximum number of series. If there are more groups, the smallest share the last series. */
  readonly max: number;
  /** Id of the shared series. */
  readonly others: string;
}

/** Series per day. Largest total first. */
export function dailySeries<Row extends { readonly day: string }>(
  rows: readonly Row[],
  range: DayRange,
  grouping: Grouping<Row>,
): BucketSeries[] {
  return bucketSeries(rows, eachDay(range), ({ day }) => day, grouping);
}

/** Series over `buckets`, such as days or hours. Ignores rows of other buckets. Largest total first. */
export function bucketSeries<Row>(
  rows: readonly Row[],
  buckets: readonly string[],
  bucketOf: (row: Row) => string,
  { group, value, max, others }: Grouping<Row>,
): BucketSeries[] {
  const indexByBucket = new Map(buckets.map((bucket, index) => [bucket, index]));
  const valuesByGroup = new Map<string, number[]>();
  for (const row of rows) {
    const index = indexByBucket.get(bucketOf(row));
    if (index === undefined) continue;
    const values = valuesByGroup.get(group(row)) ?? buckets.map(() => 0);
    values[index] = (values[index] ?? 0) + value(row);
    valuesByGroup.set(group(row), values);
  }
  const ranked = [...valuesByGroup]
    .map(([id, values]) => ({ id, values }))
    .sort((a, b) => sum(b.values) - sum(a.values) || a.id.localeCompare(b.id));
  if (ranked.length <= max) return ranked;
  const rest = ranked.slice(max - 1);
  const restValues = buckets.map((_, index) => sum(rest.map(({ values }) => values[index] ?? 0)));
  return [...ranked.slice(0, max - 1), { id: others, values: restValues }];
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
