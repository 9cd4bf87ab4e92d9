/** Serialises what counts the rows of an account before it adds one: without it, many at once would all see the same count. */
import { dialectOf } from '../connection/dialect.js';
import type { Database } from '../tables.js';

/**
 * Makes other transactions that call this for the same account wait for the end of this one. On SQLite a transaction holds the
 * write lock from its beginning.
 */
export async function lockAccount(transaction: Database, accountId: string): Promise<void> {
  if (dialectOf(transaction) === 'sqlite') return;
  // Not `for update`: rows that refer to the account are added meanwhile.
  await transaction.selectFrom('accounts').select('id').where('id', '=', accountId).forNoKeyUpdate().execute();
}
