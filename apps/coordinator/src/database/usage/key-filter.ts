/** Which keys of an account a filter of its usage means. */
import type { Database } from '../tables.js';

/** `key` is the id of one, or `playground` for all that the playground made. A query of their ids. */
export function keysOf(database: Database, accountId: string, key: string) {
  const keys = database.selectFrom('api_keys').select('id').where('account_id', '=', accountId);
  return key === 'playground' ? keys.where('made_for', '=', 'playground') : keys.where('id', '=', key);
}
