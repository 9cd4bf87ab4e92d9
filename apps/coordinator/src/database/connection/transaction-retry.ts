/** Runs a transaction again when the database refused it for reasons that pass: locks, serialization, lost connections. */
import { errorReason } from '../../config/startup-error.js';

/** SQLSTATE and SQLite codes, and the system's, after which the same transaction may well succeed. */
const PASSING =
  /^(40001|40P01|55P03|57P0[1-5]|53\d\d\d|08\d\d\d|23505|25P0[123]|57014|SQLITE_BUSY.*|SQLITE_LOCKED.*|SQLITE_CONSTRAINT_(?:UNIQUE|PRIMARYKEY)|ECONN\w+|EPIPE|ETIMEDOUT|EAI_AGAIN|ENOTFOUND)$/;
/** `pg` has no codes for these. */
const PASSING_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Query read timeout)/;

const VIOLATION = /^(23505|SQLITE_CONSTRAINT_(?:UNIQUE|PRIMARYKEY))$/;

const FIRST_PAUSE_MS = 4;
const LONGEST_PAUSE_MS = 500;

/** Whether the transaction may be tried again. A unique violation may: another coordinator was faster, and its row is there now. */
export function isTransient(error: unknown): boolean {
  return PASSING.test(errorReason(error)) || (error instanceof Error && PASSING_MESSAGES.test(error.message));
}

/** Whether the database could not be reached, or did not take what was asked in time. */
export function isUnavailable(error: unknown): boolean {
  return isTransient(error) && !VIOLATION.test(errorReason(error));
}

/**
 * Runs `work` until it succeeds, fails for good, or `deadline` (milliseconds since 1970) has passed; then its last error is
 * thrown. `work` must be one transaction, or safe to repeat.
 */
export async function withRetries<T>(work: () => Promise<T>, deadline: number): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      return await work();
    } catch (error) {
      // Half to the whole pause, so that two coordinators that met once do not meet again.
      const wait = pause * (0.5 + Math.random() / 2);
      if (!isTransient(error) || Date.now() + wait > deadline) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, wait);
      });
    }
  }
}
