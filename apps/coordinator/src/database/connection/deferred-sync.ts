/** Lets several SQLite commits share one disk sync. On PostgreSQL, every commit is durable and both functions do nothing. */
import type { Kysely } from 'kysely';
import { FileAdapter } from './sqlite.js';

/** Call inside a transaction: the commit does not wait for the disk, and is durable after {@link syncToDisk}. */
export function deferSync<Tables>(transaction: Kysely<Tables>): void {
  const { adapter } = transaction.getExecutor();
  if (adapter instanceof FileAdapter) adapter.isSyncDeferred = true;
}

/** Resolves when all commits before this call are durable. */
export async function syncToDisk<Tables>(database: Kysely<Tables>): Promise<void> {
  const { adapter } = database.getExecutor();
  if (adapter instanceof FileAdapter) await adapter.wal.flush();
}
