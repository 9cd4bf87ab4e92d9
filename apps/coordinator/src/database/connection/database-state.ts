/** Whether the database answers and has the schema of this program. */
import { sql } from 'kysely';
import { MIGRATIONS } from '../migrations/all.js';
import type { Database } from '../tables.js';

export type DatabaseState = 'ok' | 'unreachable' | 'migrations_missing';

/** Queries the database. Never rejects. Without an answer within `ms`, the database is unreachable. */
export async function databaseState(database: Database, ms: number): Promise<DatabaseState> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'unreachable'>((resolve) => {
    timer = setTimeout(() => resolve('unreachable'), ms);
  });
  try {
    return await Promise.race([queryState(database), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function queryState(database: Database): Promise<DatabaseState> {
  try {
    const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(database);
    const applied = new Set(rows.map(({ name }) => name));
    return Object.keys(MIGRATIONS).every((name) => applied.has(name)) ? 'ok' : 'migrations_missing';
  } catch {
    return 'unreachable';
  }
}
