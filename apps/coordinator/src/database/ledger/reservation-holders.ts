/**
 * Heartbeats of coordinators, the holders of reservations, in the table `ledger_holders`. A coordinator without heartbeats is considered
 * dead; others may then release its reservations and end its credit leases.
 *
 * On PostgreSQL, the times are those of the database's clock.
 */
import { sql } from 'kysely';
import { databaseTime } from '../connection/database-clock.js';
import { dialectOf } from '../connection/dialect.js';
import type { Database } from '../tables.js';

export const HOLDER_HEARTBEAT_MS = 5000;
/** Time without heartbeat after which a coordinator is considered dead. */
export const HOLDER_TIMEOUT_MS = 20_000;
/** Longer timeout after a start or a pause of the own heartbeats, because an outage of the database pauses all coordinators'. */
const PAUSED_TIMEOUT_MS = 120_000;
/** Interval between two own heartbeats above which they are considered paused. */
const MAX_INTERVAL_MS = 2 * HOLDER_HEARTBEAT_MS;

interface HeartbeatTimes {
  lastAt: number;
  /** Time since which heartbeats have had no pause. */
  uninterruptedSince: number;
}

/** Heartbeats that this process sent, on a monotonic clock. Key: coordinator id. */
const heartbeats = new Map<string, HeartbeatTimes>();

/** Stores a heartbeat. `now`: milliseconds since 1970, used on SQLite. */
export async function recordHolder(database: Database, id: string, now: number): Promise<void> {
  const seenAt = dialectOf(database) === 'postgres' ? databaseTime(database) : now;
  await database
    .insertInto('ledger_holders')
    .values({ id, seen_at: seenAt })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: seenAt }))
    .execute();
  const at = performance.now();
  const last = heartbeats.get(id);
  if (last === undefined || at - last.lastAt > MAX_INTERVAL_MS) heartbeats.set(id, { lastAt: at, uninterruptedSince: at });
  else last.lastAt = at;
}

/** Removes a coordinator that shuts down, so that its reservations can be released at once. */
export async function removeHolder(database: Database, id: string): Promise<void> {
  heartbeats.delete(id);
  await database.deleteFrom('ledger_holders').where('id', '=', id).execute();
}

/**
 * Ids of jobs that dead coordinators have reserved. On SQLite, every other coordinator is dead, because only one may use the file.
 */
export async function abandonedJobs(database: Database, self: string): Promise<string[]> {
  const rows = await database
    .selectFrom('jobs')
    .select('job_id')
    .where('state', '=', 'reserved')
    .where('holder', '<>', self)
    .$if(dialectOf(database) === 'postgres', (query) => {
      const cutOff = sql<number>`${databaseTime(database)} - ${sql.lit(timeoutFor(self))}`;
      return query.where('holder', 'not in', (select) => select.selectFrom('ledger_holders').select('id').where('seen_at', '>=', cutOff));
    })
    .execute();
  return rows.map((row) => row.job_id);
}

/** Time after its expiry in which a credit lease is not ended, in milliseconds. After an outage, its coordinator needs time to renew. */
export function leaseGraceMs(database: Database, self: string): number {
  return dialectOf(database) === 'postgres' ? timeoutFor(self) - HOLDER_TIMEOUT_MS : 0;
}

function timeoutFor(self: string): number {
  const own = heartbeats.get(self);
  const now = performance.now();
  const isUninterrupted = own !== undefined && now - own.lastAt <= MAX_INTERVAL_MS && now - own.uninterruptedSince >= HOLDER_TIMEOUT_MS;
  return isUninterrupted ? HOLDER_TIMEOUT_MS : PAUSED_TIMEOUT_MS;
}

/** Ids of jobs of this coordinator that were reserved before `reservedBefore` and are still reserved. */
export async function ownReservedJobs(database: Database, self: string, reservedBefore: number): Promise<string[]> {
  const rows = await database
    .selectFrom('jobs')
    .select('job_id')
    .where('state', '=', 'reserved')
    .where('holder', '=', self)
    .where('reserved_at', '<', reservedBefore)
    .execute();
  return rows.map((row) => row.job_id);
}
