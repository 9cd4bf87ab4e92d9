/** Statements that change several API keys do not deadlock with `recordKeyUse` of another coordinator, which locks rows in order of id. */
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AccountRepository } from '../../src/database/accounts/account-repository.js';
import { ApiKeyCache } from '../../src/database/accounts/api-key-cache.js';
import { addKey, createAccount, newKeyText } from '../../src/database/accounts/api-key-repository.js';
import { leaveAllOrganisations, OrganisationRepository } from '../../src/database/accounts/organisation-repository.js';
import { applyRetention } from '../../src/database/privacy/retention.js';
import type { Database } from '../../src/database/tables.js';
import { untilBlocked } from '../support/blocked-statement.js';
import { describePostgres, type TestDatabase } from '../support/databases.js';

const NOW = 1_790_000_000_000;
const NO_MAXIMUM = {
  ...{ auditLogDays: null, organisationLogDays: null, sessionAddressDays: null, failedRequestDays: null, receiptDays: null },
  ...{ machineDays: null, unlinkedMachineDays: null, closedAccountDays: null },
};

describePostgres('the keys of an account', (fresh) => {
  let place: TestDatabase;
  let database: Database;
  let accounts: AccountRepository;
  let accountId: string;

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    accounts = new AccountRepository({ database, now: () => NOW, onChange: () => {} });
    accountId = await createAccount(database, 'customer', NOW);
    await addKeys();
  });
  afterEach(async () => {
    await database.destroy();
    await place.remove();
  });

  /** PostgreSQL reads rows in the order in which they were written, so the ids descend. */
  async function addKeys(): Promise<void> {
    const created = { createdFor: 'playground', createdBy: accountId } as const;
    for (const [id, options] of [
      ['key-4', created],
      ['key-3', {}],
      ['key-2', {}],
      ['key-1', {}],
    ] as const) {
      const added = await addKey(database, { accountId, kind: 'api', text: newKeyText(), ...options, now: NOW });
      await database.updateTable('api_keys').set({ id }).where('id', '=', added).execute();
    }
  }

  const use = async (transaction: Database, id: string): Promise<void> => {
    await transaction.updateTable('api_keys').set({ last_used_at: NOW }).where('id', '=', id).execute();
  };

  /** Stores the use of the first and the last key, while `change` runs in between. */
  async function changeDuringUse(last: string, change: () => Promise<unknown>): Promise<void> {
    let changed: Promise<unknown> | undefined;
    await database.transaction().execute(async (transaction) => {
      await use(transaction, 'key-1');
      changed = change();
      // The error is reported below.
      changed.catch(() => {});
      await untilBlocked(database);
      await use(transaction, last);
    });
    await changed;
  }
  const openKeyCount = async (): Promise<number> =>
    (await database.selectFrom('api_keys').select('id').where('revoked_at', 'is', null).execute()).length;

  it('are revoked with the account', async () => {
    await changeDuringUse('key-3', () => accounts.close(accountId));
    expect(await openKeyCount()).toBe(0);
  });

  it('are revoked with the account, after the playground keys of its user', async () => {
    await changeDuringUse('key-4', () => accounts.close(accountId, (transaction) => leaveAllOrganisations(transaction, accountId, NOW)));
    expect(await openKeyCount()).toBe(0);
  });

  it('of an organisation are revoked with the member who created them', async () => {
    const cache = new ApiKeyCache({ database, now: () => NOW, onWriteError: () => {} });
    const organisations = new OrganisationRepository({ database, apiKeyCache: cache, now: () => NOW });
    const [organisationId, ownerId] = [await createAccount(database, 'organisation', NOW), await createAccount(database, 'owner', NOW)];
    await database.insertInto('organisations').values({ account_id: organisationId, created_by: ownerId, created_at: NOW }).execute();
    for (const [user_id, role] of [
      [ownerId, 'owner'],
      [accountId, 'developer'],
    ] as const) {
      await database
        .insertInto('organisation_members')
        .values({ organisation_id: organisationId, user_id, role, joined_at: NOW })
        .execute();
    }
    await database.updateTable('api_keys').set({ account_id: organisationId, created_by: accountId }).execute();
    await changeDuringUse('key-3', () => organisations.remove(ownerId, organisationId, accountId, { revokeKeys: true }));
    expect(await openKeyCount()).toBe(0);
    await cache.close();
  });

  it('are erased again after the closure', async () => {
    await accounts.close(accountId);
    // A table without earlier versions of the rows has the order of the insertions.
    await database.deleteFrom('api_keys').execute();
    await sql`vacuum api_keys`.execute(database);
    await addKeys();
    await changeDuringUse('key-3', () => applyRetention(database, NO_MAXIMUM, NOW));
    expect(await database.selectFrom('api_keys').select('id').where('prefix', '!=', '').execute()).toEqual([]);
  });
});
