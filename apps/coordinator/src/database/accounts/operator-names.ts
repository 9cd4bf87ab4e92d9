/** What to call an operator on the trail: the owner of the account, or the name of the admin key. */
import type { Database } from '../tables.js';

const ACCOUNT = 'account:';
const KEY = 'key:';

/** By `account:<id>` and `key:<id>`; those that are gone have no name. */
export async function operatorNames(database: Database, operators: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const idsOf = (prefix: string) => operators.flatMap((text) => (text.startsWith(prefix) ? [text.slice(prefix.length)] : []));
  const [accounts, keys] = [idsOf(ACCOUNT), idsOf(KEY)];
  if (accounts.length > 0) {
    const rows = await database.selectFrom('auth_users').select(['id', 'email']).where('id', 'in', accounts).execute();
    for (const { id, email } of rows) names.set(ACCOUNT + id, email);
  }
  if (keys.length > 0) {
    const rows = await database.selectFrom('api_keys').select(['id', 'name', 'prefix']).where('id', 'in', keys).execute();
    for (const { id, name, prefix } of rows) names.set(KEY + id, `key ${name === '' ? `${prefix}…` : name}`);
  }
  return names;
}
