/** Small questions about accounts and their machines that several parts ask. */
import { cleanName } from '@inference/protocol';
import type { Database } from '../tables.js';

/** What the account's user calls themselves; the name of an account that nobody signed up for. */
export async function nameOfAccount(database: Database, accountId: string): Promise<string> {
  const row = await database
    .selectFrom('accounts')
    .leftJoin('auth_users', 'auth_users.id', 'accounts.id')
    .select(['accounts.name', 'auth_users.name as user_name'])
    .where('accounts.id', '=', accountId)
    .executeTakeFirst();
  // Names that were stored before they were checked.
  return cleanName(row?.user_name ?? row?.name ?? '');
}

/** Whether a machine earns for this account. */
export async function isOwnedBy(database: Database, providerId: string, accountId: string): Promise<boolean> {
  const row = await database
    .selectFrom('provider_owners')
    .select('account_id')
    .where('provider_id', '=', providerId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return row !== undefined;
}
