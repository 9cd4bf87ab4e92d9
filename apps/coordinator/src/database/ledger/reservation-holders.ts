/** Heartbeats of coordinators, and the reservations of dead ones. */
import { dialectOf } from '../connection/dialect.js';
import type { Database } from '../tables.js';

/** Stores a heartbeat. */
export async function recordHolder(database: Database, id: string, now: number): Promise<void> {
  await database
    .insertInto('ledger_holders')
    .values({ id, seen_at: now })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: now }))
    .execute();
}

/** Removes a coordinator, so its reservations can be released at once. */
export async function removeHolder(database: Database, id: string): Promise<void> {
  await database.deleteFrom('ledger_holders').where('id', '=', id).execute();
}

/**
 * Jobs still reserved by coordinators without heartbeat since `deadBefore` (milliseconds since 1970). On SQLite every other
 * coordinator is dead, as a file has only one.
 */
export async function abandonedJobs(database: Database, self: string, deadBefore: number): Promise<string[]> {
  const rows = await database
    .selectFrom('jobs')
    .select('job_id')
    .where('state', '=', 'reserved')
    .where('holder', '<>', self)
    .$if(dialectOf(database) === 'postgres', (query) =>
      query.where('holder', 'not in', (select) => select.selectFrom('ledger_holders').select('id').where('seen_at', '>=', deadBefore)),
    )
    .execute();
  return rows.map((row) => row.job_id);
}

/** Jobs of this coordinator, reserved before `olderThan` and still reserved. */
export async function ownReservedJobs(database: Database, self: string, olderThan: number): Promise<string[]> {
  const rows = await database
    .selectFrom('jobs')
    .select('job_id')
    .where('state', '=', 'reserved')
    .where('holder', '=', self)
    .where('reserved_at', '<', olderThan)
    .execute();
  return rows.map((row) => row.job_id);
}
