/** Helpers of the admin account routes: find an account by id, and build its response body. */
import { type AdminAccount, RequestError } from '@inference/formats';
import type { AccountRepository, ListedAccount } from '../../database/accounts/account-repository.js';
import { isoTime, isoTimeOrNull } from '../parameters/times.js';

/** Finds an account, open or closed. Throws RequestError `not_found`. */
export async function existingAccount(accounts: AccountRepository, id: string): Promise<ListedAccount> {
  const account = await accounts.findListed(id);
  if (account !== null) return account;
  throw new RequestError('not_found', null, 'There is no such account.');
}

/** Finds an account. Throws RequestError `not_found`, or `conflict` for a closed account. */
export async function openAccount(accounts: AccountRepository, id: string): Promise<ListedAccount> {
  const account = await existingAccount(accounts, id);
  if (account.deletedAt === null) return account;
  throw new RequestError('conflict', null, 'This account is closed.');
}

export function accountBody(account: ListedAccount): AdminAccount {
  return {
    id: account.id,
    name: account.name,
    email: account.email,
    created_at: isoTime(account.createdAt),
    is_admin: account.isAdmin,
    is_organisation: account.isOrganisation,
    suspended_at: isoTimeOrNull(account.suspendedAt),
    deleted_at: isoTimeOrNull(account.deletedAt),
  };
}
