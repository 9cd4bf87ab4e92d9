import type { SelectQueryBuilder } from 'kysely';
import type { Database } from '../tables.js';
import { dialectOf } from './dialect.js';

/** Locks the selected rows until the end of the transaction. No-op on SQLite, where a transaction holds the only write lock. */
export function locked<DB, TB extends keyof DB, O>(
  database: Database,
  query: SelectQueryBuilder<DB, TB, O>,
  strength: 'update' | 'share',
): SelectQueryBuilder<DB, TB, O> {
  if (dialectOf(database) === 'sqlite') return query;
  return strength === 'update' ? query.forUpdate() : query.forShare();
}
