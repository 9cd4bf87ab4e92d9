/**
 * `ProviderLinks` links providers to the accounts of their owners, which get the earnings.
 *
 * After a provider has proved its key, its agent presents a machine token, which the owner's approval issued. The owner, the agent, or the
 * closure of the account ends the link. Past earnings stay with the account.
 */
import type { ProviderId } from '@inference/protocol';
import { nameOfAccount } from '../database/accounts/account-repository.js';
import { withRetries } from '../database/connection/transaction-retry.js';
import { linkProvider, unlinkProvider } from '../database/ledger/link-provider.js';
import {
  bindMachineToken,
  readMachineToken,
  revokeMachineToken,
  revokeTokensOfAccount,
  revokeTokensOfProvider,
} from '../database/providers/machine-token-repository.js';
import type { Database } from '../database/tables.js';

type LinkResult =
  | { readonly kind: 'linked'; readonly accountId: string; readonly accountName: string }
  | { readonly kind: 'refused'; readonly reason: 'token_revoked' | 'other_machine' | 'other_account' | 'account_suspended' };

interface ProviderLinksOptions {
  readonly database: Database;
  readonly now: () => number;
  readonly onUnlink: (providerId: ProviderId) => void;
}

/** Maximum time during which a transaction is retried while the database is busy, in milliseconds. */
const MAX_RETRY_MS = 10_000;

export class ProviderLinks {
  readonly #options: ProviderLinksOptions;

  constructor(options: ProviderLinksOptions) {
    this.#options = options;
  }

  /** Links a provider, whose id the caller has verified, to the account of the machine token. Rejects if the database fails. */
  async link(providerId: ProviderId, token: string): Promise<LinkResult> {
    const { database, now } = this.#options;
    const tokenState = await readMachineToken(database, token);
    if (tokenState.kind !== 'good') return refused(tokenState.kind === 'suspended' ? 'account_suspended' : 'token_revoked');
    if (tokenState.providerId !== null && tokenState.providerId !== providerId) return refused('other_machine');
    const { accountId } = tokenState;
    const at = now();
    try {
      await this.#inTransaction(async (transaction) => {
        if (!(await bindMachineToken(transaction, { token, providerId, now: at }))) throw new LinkRefused('token_revoked');
        const outcome = await linkProvider(transaction, { providerId, accountId, at, replaces: 'closed_owner' });
        if (outcome === 'other_account') throw new LinkRefused(outcome);
      });
    } catch (error) {
      // Thrown inside the transaction, to roll it back.
      if (error instanceof LinkRefused) return refused(error.reason);
      throw error;
    }
    return { kind: 'linked', accountId, accountName: await nameOfAccount(database, accountId) };
  }

  /** Unlinks a provider at its owner's request. False if the provider is not linked to the account. */
  async unlink(accountId: string, providerId: ProviderId): Promise<boolean> {
    const link = { accountId, providerId, at: this.#options.now() };
    const wasLinked = await this.#inTransaction(async (transaction) => {
      await revokeTokensOfProvider(transaction, link);
      return unlinkProvider(transaction, link);
    });
    if (wasLinked) this.#options.onUnlink(providerId);
    return wasLinked;
  }

  /** Revokes a machine token and unlinks its provider, if any. An unknown token is not an error (RFC 7009 section 2.2). */
  async revoke(token: string): Promise<void> {
    const at = this.#options.now();
    const unlinked = await this.#inTransaction(async (transaction) => {
      const revoked = await revokeMachineToken(transaction, token, at);
      if (revoked === null || revoked.providerId === null) return null;
      const { accountId, providerId } = revoked;
      return (await unlinkProvider(transaction, { accountId, providerId, at })) ? (providerId as ProviderId) : null;
    });
    if (unlinked !== null) this.#options.onUnlink(unlinked);
  }

  /** Revokes the machine tokens of a closed account and unlinks its providers. */
  async closeAccount(accountId: string): Promise<void> {
    const { database, now } = this.#options;
    await this.#inTransaction((transaction) => revokeTokensOfAccount(transaction, accountId, now()));
    const owned = await database.selectFrom('provider_owners').select('provider_id').where('account_id', '=', accountId).execute();
    for (const { provider_id } of owned) await this.unlink(accountId, provider_id as ProviderId);
  }

  #inTransaction<T>(work: (transaction: Database) => Promise<T>): Promise<T> {
    return withRetries(() => this.#options.database.transaction().execute(work), Date.now() + MAX_RETRY_MS);
  }
}

type RefusedReason = Extract<LinkResult, { kind: 'refused' }>['reason'];

function refused(reason: RefusedReason): LinkResult {
  return { kind: 'refused', reason };
}

class LinkRefused extends Error {
  constructor(readonly reason: RefusedReason) {
    super(reason);
    this.name = 'LinkRefused';
  }
}
