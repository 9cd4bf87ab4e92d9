/** Closes accounts of people and organisations: revokes API keys, unlinks providers and erases personal data. Ledger postings stay. */
import { APIError } from 'better-auth/api';
import type { AccountRepository } from '../database/accounts/account-repository.js';
import { leaveAllOrganisations, SoleOwnerError } from '../database/accounts/organisation-repository.js';
import type { Database } from '../database/tables.js';
import type { ProviderLinks } from './provider-links.js';

/** Closes an account. `within` runs in the same transaction as the closure. If `within` rejects, the account stays open. */
export type CloseAccount = (id: string, within: (transaction: Database) => Promise<void>) => Promise<void>;

export function accountCloser(deps: {
  readonly accounts: AccountRepository;
  readonly providerLinks: ProviderLinks;
  /** Removes a limited number of the account's receipts. The retention job removes the rest later. */
  readonly eraseReceipts: (id: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
}): CloseAccount {
  return async (id, within) => {
    await deps.accounts.close(id, within);
    await deps.providerLinks.closeAccount(id);
    await deps.eraseReceipts(id).catch(deps.onError);
  };
}

/**
 * Closes a person's account and ends the person's memberships.
 *
 * @throws {SoleOwnerError} The person is the only owner of an organisation.
 */
export function closeAccountOfUser(close: CloseAccount, userId: string, now: number): Promise<void> {
  return close(userId, (transaction) => leaveAllOrganisations(transaction, userId, now));
}

/** {@link closeAccountOfUser} for better-auth, the sign-in library: throws the library's `APIError` instead of SoleOwnerError. */
export async function closeOwnAccount(close: CloseAccount, userId: string, now: number): Promise<void> {
  try {
    await closeAccountOfUser(close, userId, now);
  } catch (error) {
    if (!(error instanceof SoleOwnerError)) throw error;
    const names = error.organisations.join(', ');
    const message = `You are the only owner of ${names}. Make another member an owner, or delete the organisation first.`;
    throw new APIError('CONFLICT', { message });
  }
}
