/** Lets several SQLite commits share one fsync. No-op on PostgreSQL, where every commit is durable. */
import type { Kysely } from 'kysely';
import { FileAdapter } from './sqlite.js';

/** Call inside a transaction. Its commit then does not wait for the disk, and is durable only after {@link syncToDisk}. */
export function deferSync<Tables>(transaction: Kysely<Tables>): void {
  const { adapter } = transaction.getExecutor();
  if (adapter instanceof FileAdapter) adapter.isSyncDeferred = true;
}

/** Resolves when all commits before this call are durable. */
export async function syncToDisk<Tables>(database: Kysely<Tables>): Promise<void> {
  const { adapter } = database.getExecutor();
  if (adapter instanceof FileAdapter) await adapter.wal.flush();
}
