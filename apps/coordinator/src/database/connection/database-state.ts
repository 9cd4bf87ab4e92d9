/** `databaseState`: whether the database answers, and whether its schema suits this program. For health checks. */
import { withTimeLimit } from '@inference/protocol';
import { errorReason } from '../../config/startup-error.js';
import { readHistory } from '../migrations/history.js';
import { schemaStateOf, thisProgram } from '../migrations/schema-state.js';
import type { Database } from '../tables.js';

/** `too_new`: a newer coordinator has removed tables or columns that this version uses. */
export type DatabaseState = 'ok' | 'unreachable' | 'migrations_missing' | 'too_new';

/** Errors of a database without migration history: SQLSTATE `undefined_table` (42P01), and SQLite's message. */
const NO_HISTORY = /^(42P01$|no such table)/;

/** Never rejects. A database that does not answer within `ms` milliseconds is `unreachable`. */
export async function databaseState(database: Database, ms: number): Promise<DatabaseState> {
  const state = await withTimeLimit(queryState(database), ms);
  return state === 'late' ? 'unreachable' : state;
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

/** Also tests the message, because SQLite has no error code of its own for a missing table. */
function isWithoutHistory(error: unknown): boolean {
  return NO_HISTORY.test(errorReason(error)) || (error instanceof Error && NO_HISTORY.test(error.message));
}
