/**
 * Removes the last group of rows if the `limit` of the query may have truncated it. Adjacent rows with equal ids form a group, such as the
 * recipients of an alert. A group that fills the whole result stays.
 */
export function completeGroups<Row>(rows: readonly Row[], limit: number, idOf: (row: Row) => string): readonly Row[] {
  const last = rows.at(-1);
  if (last === undefined || rows.length < limit) return rows;
  const complete = rows.filter((row) => idOf(row) !== idOf(last));
  return complete.length === 0 ? rows : complete;
}
