/** Rows of a query that a limit ended, without the last group: the limit may have cut the group. A group is a run of equal ids. */
export function completeGroups<Row>(rows: readonly Row[], limit: number, idOf: (row: Row) => string): readonly Row[] {
  const last = rows.at(-1);
  if (last === undefined || rows.length < limit) return rows;
  const complete = rows.filter((row) => idOf(row) !== idOf(last));
  return complete.length === 0 ? rows : complete;
}
