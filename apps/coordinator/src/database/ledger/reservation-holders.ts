/** Heartbeats of coordinators with reservations, and reservations of dead coordinators, by the database's clock on PostgreSQL. */
import { sql } from 'kysely';
import { databaseTime } from '../connection/database-clock.js';
import { dialectOf } from '../connection/dialect.js';
import type { Database } from '../tables.js';

/** Heartbeat interval that {@link HOLDER_TIMEOUT_MS} is chosen for, in milliseconds. */
export const HOLDER_HEARTBEAT_MS = 5000;
/** Time without heartbeat after which a coordinator counts as dead. */
export const HOLDER_TIMEOUT_MS = 20_000;
/** Timeout after a start or a pause of own heartbeats, whose cause may have paused others too. */
const PAUSED_TIMEOUT_MS = 120_000;
/** Heartbeats with longer intervals count as paused. */
const MAX_INTERVAL_MS = 2 * HOLDER_HEARTBEAT_MS;

interface HeartbeatTimes {
  lastAt: number;
  /** Start of the heartbeats without a pause. */
  uninterruptedSince: number;
}

/** Heartbeats of this process by coordinator id, on a monotonic clock. */
const heartbeats = new Map<string, HeartbeatTimes>();

/** Stores a heartbeat. `now`: for SQLite. */
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

/** Removes a coordinator, so its reservations can be released at once. */
export async function removeHolder(database: Database, id: string): Promise<void> {
  heartbeats.delete(id);
  await database.deleteFrom('ledger_holders').where('id', '=', id).execute();
}

/**
 * Jobs still reserved by dead coordinators. On SQLite, every other coordinator is dead, because only one may use the file.
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

/** Wait beyond the expiry of another's lease, in milliseconds. After an outage, coordinators need time to renew expired leases. */
export function leaseGraceMs(database: Database, self: string): number {
  return dialectOf(database) === 'postgres' ? timeoutFor(self) - HOLDER_TIMEOUT_MS : 0;
}

function timeoutFor(self: string): number {
  const own = heartbeats.get(self);
  const now = performance.now();
  const isUninterrupted = own !== undefined && now - own.lastAt <= MAX_INTERVAL_MS && now - own.uninterruptedSince >= HOLDER_TIMEOUT_MS;
  return isUninterrupted ? HOLDER_TIMEOUT_MS : PAUSED_TIMEOUT_MS;
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
