/**
 * `RowPosition`: position in a list ordered by time and id, newest first. The id orders rows of the same time.
 *
 * Used for keyset pagination, and to remove the oldest rows of tables with a maximum number of rows.
 */
import { type ExpressionBuilder, type RawBuilder, type SqlBool, type StringReference, sql } from 'kysely';
import type { Database } from './tables.js';

export interface RowPosition {
  /** Time of the row, in milliseconds since 1970. */
  readonly at: number;
  readonly id: string;
}

/**
 * Condition for the rows after a position, which are older.
 *
 * @example query.where((where) => isAfterPosition(where, 'created_at', 'id', after))
 */
export function isAfterPosition<DB, Table extends keyof DB>(
  where: ExpressionBuilder<DB, Table>,
  timeColumn: StringReference<DB, Table>,
  idColumn: StringReference<DB, Table>,
  { at, id }: RowPosition,
): RawBuilder<SqlBool> {
  const [time, rowId] = [where.ref(timeColumn), where.ref(idColumn)];
  return sql<SqlBool>`(${time} < ${at} or (${time} = ${at} and ${rowId} < ${id}))`;
}

/** Table with columns `at` and `id`, and with a maximum number of rows per value of `ownerColumn`. */
interface BoundedTable {
  readonly table: 'owner_commands' | 'organisation_events';
  readonly ownerColumn: 'account_id' | 'organisation_id';
  readonly maxRows: number;
}

/** Removes the oldest rows of an owner above the maximum. Call after each insert. */
export async function removeOldestRows(database: Database, { table, ownerColumn, maxRows }: BoundedTable, ownerId: string): Promise<void> {
  const rowsOfOwner = sql`${sql.table(table)} where ${sql.ref(ownerColumn)} = ${ownerId}`;
  const [at, id] = [sql.ref('at'), sql.ref('id')];
  const newestFirst = sql`order by ${at} desc, ${id} desc`;
  const { rows } = await sql<RowPosition>`select ${at}, ${id} from ${rowsOfOwner} ${newestFirst} limit 1 offset ${maxRows}`.execute(
    database,
  );
  const [newestSurplus] = rows;
  if (newestSurplus === undefined) return;
  const isSurplus = sql`(${at} < ${newestSurplus.at} or (${at} = ${newestSurplus.at} and ${id} <= ${newestSurplus.id}))`;
  await sql`delete from ${rowsOfOwner} and ${isSurplus}`.execute(database);
}
