/** `databaseTime`: time of the database's clock. Coordinators of a cluster share it, while their own clocks may differ. */
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../tables.js';
import { dialectOf } from './dialect.js';

/** SQL expression: milliseconds since 1970 at the start of the statement. SQLite uses this machine's clock. */
export function databaseTime(database: Database): RawBuilder<number> {
  return dialectOf(database) === 'postgres'
    ? sql<number>`(extract(epoch from statement_timestamp()) * 1000)::bigint`
    : sql<number>`cast(unixepoch('subsec') * 1000 as integer)`;
}
