/** Runs work such as pruning at one coordinator only, if several share a PostgreSQL database. A SQLite database has one coordinator. */
import { createHash } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { RepeatedTask } from '../repeated-task.js';
import { databaseTime } from './connection/database-clock.js';
import { dialectOf } from './connection/dialect.js';
import type { Database } from './tables.js';

/** Fraction of the period after which the next run is due. Less than 1, because timers are not exact. */
const DUE_AFTER = 0.9;

/** Runs `work` under a PostgreSQL advisory lock, which ends with its connection. Resolves to null if another coordinator has the lock. */
export async function runExclusively<T>(database: Database, name: string, work: () => Promise<T>): Promise<T | null> {
  if (dialectOf(database) === 'sqlite') return work();
  return database.connection().execute(async (connection) => {
    const key = lockKeyOf(name);
    const { rows } = await sql<{ locked: boolean }>`select pg_try_advisory_lock(${key}) as locked`.execute(connection);
    if (rows[0]?.locked !== true) return null;
    try {
      return await work();
    } finally {
      // An error means that the connection, and the lock with it, is lost. The result of the work stays valid.
      await sql`select pg_advisory_unlock(${key})`.execute(connection).catch(() => {});
    }
  });
}

/**
 * Like {@link runExclusively}, but resolves to null also if the work has succeeded within the period at any coordinator.
 *
 * On SQLite, every call runs the work.
 */
export async function runOncePerPeriod<T>(database: Database, name: string, periodMs: number, work: () => Promise<T>): Promise<T | null> {
  if (dialectOf(database) === 'sqlite') return work();
  return runExclusively(database, name, async () => {
    const now = databaseTime(database);
    const dueAfter = sql<number>`${now} - ${sql.lit(Math.round(DUE_AFTER * periodMs))}`;
    const ran = await database
      .selectFrom('periodic_runs')
      .select('name')
      .where('name', '=', name)
      .where('ran_at', '>', dueAfter)
      // A run in the future is ignored, because the clock has been set back since.
      .where('ran_at', '<=', now)
      .executeTakeFirst();
    if (ran !== undefined) return null;
    const result = await work();
    await database
      .insertInto('periodic_runs')
      .values({ name, ran_at: now })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ ran_at: now }))
      .execute();
    return result;
  });
}

/** Runs work periodically, once per period in the whole cluster. Returns a function that stops the timer and waits for running work. */
export function everyPeriod(options: {
  readonly database: Database;
  readonly name: string;
  readonly periodMs: number;
  readonly work: () => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}): () => Promise<void> {
  const { database, name, periodMs, work, onError } = options;
  const repeated = new RepeatedTask(periodMs, () => runOncePerPeriod(database, name, periodMs, work), onError);
  return () => repeated.stop();
}

/** Advisory locks have 64-bit keys, so the name is hashed. */
function lockKeyOf(name: string): RawBuilder<unknown> {
  const bytes = createHash('sha256').update(`inference coordinator: ${name}`).digest();
  return sql`${bytes.readBigInt64BE(0).toString()}::bigint`;
}
