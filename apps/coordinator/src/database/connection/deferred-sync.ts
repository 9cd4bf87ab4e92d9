/**
 * Commits without waiting for the disk, for callers that sync many commits at once. On PostgreSQL, which other coordinators share and
 * which may fail alone, every commit is durable when it returns.
 */
import type { Kysely } from 'kysely';
import { FileAdapter } from './sqlite.js';

/**
 * Call inside a transaction: its commit does not wait for the disk. Its rows are visible after the commit, and durable after a
 * later {@link syncToDisk}.
 */
export function deferSync<Tables>(transaction: Kysely<Tables>): void {
  const { adapter } = transaction.getExecutor();
  if (adapter instanceof FileAdapter) adapter.isSyncDeferred = true;
}

/** Resolves when all commits before this call are durable. */
export async function syncToDisk<Tables>(database: Kysely<Tables>): Promise<void> {
  const { adapter } = database.getExecutor();
  if (adapter instanceof FileAdapter) await adapter.wal.flush();
}
