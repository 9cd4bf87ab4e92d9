/** `withRetries`: repeats work, usually a transaction, after transient errors such as locks, serialization failures and lost connections. */
import { errorReason } from '../../config/startup-error.js';

/** SQLSTATE, SQLite and system error codes after which a retry of the same transaction may succeed. */
const TRANSIENT_CODES =
  /^(40001|40P01|55P03|57P0[1-5]|53\d\d\d|08\d\d\d|23505|25P0[123]|57014|SQLITE_BUSY.*|SQLITE_LOCKED.*|SQLITE_CONSTRAINT_(?:UNIQUE|PRIMARYKEY)|ECONN\w+|EPIPE|ETIMEDOUT|EAI_AGAIN|ENOTFOUND)$/;
/** Messages of transient `pg` errors that have no code. */
const TRANSIENT_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Query read timeout)/;

const UNIQUE_VIOLATION = /^(23505|SQLITE_CONSTRAINT_(?:UNIQUE|PRIMARYKEY))$/;

const FIRST_PAUSE_MS = 4;
const MAX_PAUSE_MS = 500;

/** Whether a retry may succeed. A unique violation counts, because the retry finds the row that another coordinator has inserted. */
export function isTransient(error: unknown): boolean {
  return TRANSIENT_CODES.test(errorReason(error)) || (error instanceof Error && TRANSIENT_MESSAGES.test(error.message));
}

/** Whether the database was unreachable or too slow. */
export function isUnavailable(error: unknown): boolean {
  return isTransient(error) && !UNIQUE_VIOLATION.test(errorReason(error));
}

/** Retries `work` until success, a permanent error, or `deadline` (milliseconds since 1970). `work` must be repeatable. */
export async function withRetries<T>(work: () => Promise<T>, deadline: number): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    try {
      return await work();
    } catch (error) {
      // Between half of the pause and the whole, at random, so that two conflicting coordinators do not conflict again.
      const wait = pause * (0.5 + Math.random() / 2);
      if (!isTransient(error) || Date.now() + wait > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}
