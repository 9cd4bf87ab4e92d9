/** `OwnedProviderRepository`: providers that are linked to accounts, and the names that owners give them. */
import { isUnclaimed } from '../ledger/unclaimed-accounts.js';
import type { Database } from '../tables.js';

const IDS_PER_QUERY = 500;

export interface OwnedProvider {
  readonly providerId: string;
  /** Milliseconds since 1970; null if unknown. */
  readonly linkedAt: number | null;
  /** Name given by the owner, else the computer name that the agent reported when it was linked. */
  readonly name: string | null;
}

export class OwnedProviderRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async list(accountId: string): Promise<OwnedProvider[]> {
    const rows = await this.#selectOwned(accountId).orderBy('provider_owners.linked_at').orderBy('provider_owners.provider_id').execute();
    return rows.map(ownedProviderOf);
  }

  async find(accountId: string, providerId: string): Promise<OwnedProvider | null> {
    const row = await this.#selectOwned(accountId).where('provider_owners.provider_id', '=', providerId).executeTakeFirst();
    return row === undefined ? null : ownedProviderOf(row);
  }

  /** Sets a provider's name; null removes the name. The caller checks that the account owns the provider. */
  async rename(accountId: string, providerId: string, name: string | null): Promise<void> {
    if (name === null) {
      await this.#database.deleteFrom('machine_names').where('provider_id', '=', providerId).where('account_id', '=', accountId).execute();
      return;
    }
    await this.#database
      .insertInto('machine_names')
      .values({ provider_id: providerId, account_id: accountId, name })
      .onConflict((conflict) => conflict.column('provider_id').doUpdateSet({ account_id: accountId, name }))
      .execute();
  }

  /** Account that each provider earns for: its owner, or an unclaimed account. Key: provider id. Unknown providers are absent. */
  async ownersOf(providerIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const owners = new Map<string, string>();
    for (let start = 0; start < providerIds.length; start += IDS_PER_QUERY) {
      const ids = providerIds.slice(start, start + IDS_PER_QUERY);
      const rows = await this.#database
        .selectFrom('provider_owners')
        .select(['provider_id', 'account_id'])
        .where('provider_id', 'in', ids)
        .execute();
      for (const { provider_id, account_id } of rows) owners.set(provider_id, account_id);
    }
    return owners;
  }

  /** Account that owns a provider; null without an owner. */
  async ownerOf(providerId: string): Promise<string | null> {
    const row = await this.#database
      .selectFrom('provider_owners')
      .select('account_id')
      .where('provider_id', '=', providerId)
      .executeTakeFirst();
    return row === undefined || isUnclaimed(row.account_id) ? null : row.account_id;
  }

  #selectOwned(accountId: string) {
    return this.#database
      .selectFrom('provider_owners')
      .leftJoin('machine_names', (join) =>
        join
          .onRef('machine_names.provider_id', '=', 'provider_owners.provider_id')
          .onRef('machine_names.account_id', '=', 'provider_owners.account_id'),
      )
      .select(['provider_owners.provider_id', 'provider_owners.linked_at', 'machine_names.name'])
      .select((select) =>
        select
          .selectFrom('machine_tokens')
          .select('machine_tokens.machine_name')
          .whereRef('machine_tokens.provider_id', '=', 'provider_owners.provider_id')
          .whereRef('machine_tokens.account_id', '=', 'provider_owners.account_id')
          .where('machine_tokens.revoked_at', 'is', null)
          .orderBy('machine_tokens.created_at', 'desc')
          .limit(1)
          .as('reported_name'),
      )
      .where('provider_owners.account_id', '=', accountId);
  }
}

function ownedProviderOf(row: {
  provider_id: string;
  linked_at: number | null;
  name: string | null;
  reported_name: string | null;
}): OwnedProvider {
  return { providerId: row.provider_id, linkedAt: row.linked_at, name: row.name ?? row.reported_name };
}
