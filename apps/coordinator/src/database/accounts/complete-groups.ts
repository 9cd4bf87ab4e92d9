/**
 * Removes the last group of rows, which the `limit` of a query may have truncated. Rows with equal ids form a group.
 *
 * Used for alerts, whose group has one row per recipient. A group that fills the whole result stays.
 */
export function completeGroups<Row>(rows: readonly Row[], limit: number, idOf: (row: Row) => string): readonly Row[] {
  const last = rows.at(-1);
  if (last === undefined || rows.length < limit) return rows;
  const complete = rows.filter((row) => idOf(row) !== idOf(last));
  return complete.length === 0 ? rows : complete;
}
