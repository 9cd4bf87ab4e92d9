import { type Kysely, sql } from 'kysely';
import { until } from './harness.js';

/** Waits until a statement on the PostgreSQL database waits for a lock of another transaction. */
export async function untilBlocked<Tables>(database: Kysely<Tables>): Promise<void> {
  const blocked = sql`select 1 from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`;
  await until(async () => (await blocked.execute(database)).rows.length > 0);
}
