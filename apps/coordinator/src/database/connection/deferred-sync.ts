/**
 * Transactions that are committed before they are on the disk, for those who gather many and wait for the disk once. On
 * PostgreSQL, which other coordinators share and which may fail by itself, a commit is on the disk when it returns.
 */
import type { Kysely } from 'kysely';
import { FileAdapter } from './sqlite.js';

/**
 * Within a transaction: its commit need not wait for the disk. What it writes is seen by everybody once it is committed, and
 * lasts once {@link syncToDisk} has resolved after that.
 */
export function deferSync<Tables>(transaction: Kysely<Tables>): void {
  const { adapter } = transaction.getExecutor();
  if (adapter instanceof FileAdapter) adapter.commitIsQuick = true;
}

/** Resolves when everything that was committed before this call is on the disk. */
export async function syncToDisk<Tables>(database: Kysely<Tables>): Promise<void> {
  const { adapter } = database.getExecutor();
  if (adapter instanceof FileAdapter) await adapter.wal.flush();
}
