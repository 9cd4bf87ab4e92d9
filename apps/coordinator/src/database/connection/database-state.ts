/** Whether the database answers, and whether this program works with the schema. */
import { errorReason } from '../../config/startup-error.js';
import { readHistory } from '../migrations/history.js';
import { schemaStateOf, thisProgram } from '../migrations/schema-state.js';
import type { Database } from '../tables.js';

/** `too_new`: a newer coordinator removed tables or columns of this version. */
export type DatabaseState = 'ok' | 'unreachable' | 'migrations_missing' | 'too_new';

/** Answers of a database without a history: SQLSTATE `undefined_table`, and SQLite's words. */
const NO_HISTORY = /^(42P01$|no such table)/;

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
    const { pending, refusal } = schemaStateOf(await readHistory(database), thisProgram());
    if (pending.length > 0) return 'migrations_missing';
    return refusal === null ? 'ok' : 'too_new';
  } catch (error) {
    return isWithoutHistory(error) ? 'migrations_missing' : 'unreachable';
  }
}

/** SQLite reports a missing table under the code of all SQL errors. */
function isWithoutHistory(error: unknown): boolean {
  return NO_HISTORY.test(errorReason(error)) || (error instanceof Error && NO_HISTORY.test(error.message));
}
