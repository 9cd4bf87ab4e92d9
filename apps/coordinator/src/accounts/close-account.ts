/** Closes accounts of people and organisations: ends keys and machines, erases identities. Postings stay. */
import { APIError } from 'better-auth/api';
import type { AccountRepository } from '../database/accounts/account-repository.js';
import { leaveAllOrganisations, SoleOwnerError } from '../database/accounts/organisation-repository.js';
import type { Database } from '../database/tables.js';
import type { ProviderLinks } from './provider-links.js';

/** `within` runs in the transaction that closes the account; a rejection cancels. */
export type CloseAccount = (id: string, within: (transaction: Database) => Promise<void>) => Promise<void>;

export function accountCloser(deps: {
  readonly accounts: AccountRepository;
  readonly providerLinks: ProviderLinks;
  /** Removes receipts. There can be very many: the retention job removes the rest. */
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
 * Closes a person's account and ends its memberships.
 *
 * @throws {SoleOwnerError} for the only owner of an organisation.
 */
export function closeAccountOfUser(close: CloseAccount, userId: string, now: number): Promise<void> {
  return close(userId, (transaction) => leaveAllOrganisations(transaction, userId, now));
}

/** {@link closeAccountOfUser}, with an error of the sign-in library for the only owner of an organisation. */
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
