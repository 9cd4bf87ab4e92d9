/**
 * What a batch of ledger steps stands on: the rows that the steps read, locked until the transaction ends. Locks are taken
 * in one order everywhere (jobs, providers, withdrawals, balances, keys, roll-ups; each by its key), so that coordinators on
 * one PostgreSQL wait for each other and never in a circle. SQLite has one lock for all, taken when the transaction began.
 */
import type { SelectQueryBuilder } from 'kysely';
import { dialectOf } from '../connection/dialect.js';
import { IdQuery, rowWriter } from '../connection/prepared-statements.js';
import type { BalanceRow, JobRow } from '../tables/ledger.js';
import type { Database, Tables } from '../tables.js';
import { JOB_COLUMNS, WITHDRAWAL_COLUMNS } from './columns.js';

/** Which rows a batch needs. The accounts and keys of named jobs, providers and withdrawals come by themselves. */
export interface RowKeys {
  readonly jobs: Set<string>;
  readonly providers: Set<string>;
  readonly accounts: Set<string>;
  readonly keys: Set<string>;
  readonly deposits: Set<string>;
  readonly withdrawals: Set<string>;
  /** Accounts whose pending earnings are asked for. */
  readonly maturing: Set<string>;
}

export interface LockedRows {
  readonly jobs: Map<string, JobRow>;
  /** Provider id → the account it earns for. */
  readonly owners: Map<string, string>;
  readonly balances: Map<string, BalanceRow>;
  readonly keys: Map<string, Tables['key_spend']>;
  readonly deposits: Set<string>;
  readonly withdrawals: Map<string, Tables['withdrawals']>;
  readonly pending: readonly Tables['pending_earnings'][];
}

export type LoadGround = (transaction: Database, needs: RowKeys) => Promise<LockedRows>;

/** The account of a provider's earnings before its first owner. Between two owners it has another one of the same form. */
export function unclaimedAccount(providerId: string): string {
  return `${UNCLAIMED}${providerId}`;
}

/** Whether an account holds what a provider earned for nobody yet. */
export function isUnclaimed(account: string): boolean {
  return account.startsWith(UNCLAIMED);
}

/** The provider whose earnings an unclaimed account holds. */
export function providerOfUnclaimed(account: string): string {
  return account.split(':')[1] ?? '';
}

const UNCLAIMED = 'provider:';

/** Makes the loader for one database. Call it inside a transaction. */
export function groundLoader(): LoadGround {
  const jobs = new IdQuery<JobRow>((database, ids) =>
    locked(database, database.selectFrom('jobs').select(JOB_COLUMNS).where('job_id', 'in', ids).orderBy('job_id'), 'update'),
  );
  const owners = new IdQuery<{ provider_id: string; account_id: string }>((database, ids) =>
    locked(
      database,
      database.selectFrom('provider_owners').select(['provider_id', 'account_id']).where('provider_id', 'in', ids).orderBy('provider_id'),
      'share',
    ),
  );
  const balances = new IdQuery<BalanceRow>((database, ids) =>
    locked(
      database,
      database.selectFrom('balances').select(['account', 'balance', 'reserved', 'earned']).where('account', 'in', ids).orderBy('account'),
      'update',
    ),
  );
  const keys = new IdQuery<Tables['key_spend']>((database, ids) =>
    locked(
      database,
      database
        .selectFrom('key_spend')
        .select(['api_key_id', 'spent', 'held', 'spent_pruned'])
        .where('api_key_id', 'in', ids)
        .orderBy('api_key_id'),
      'update',
    ),
  );
  const deposits = new IdQuery<{ event_id: string }>((database, ids) =>
    database.selectFrom('deposits').select('event_id').where('event_id', 'in', ids),
  );
  const withdrawals = new IdQuery<Tables['withdrawals']>((database, ids) =>
    locked(database, database.selectFrom('withdrawals').select(WITHDRAWAL_COLUMNS).where('id', 'in', ids).orderBy('id'), 'update'),
  );
  const pending = new IdQuery<Tables['pending_earnings']>((database, ids) =>
    database.selectFrom('pending_earnings').select(['account', 'day', 'amount']).where('account', 'in', ids),
  );
  const newOwners = rowWriter('provider_owners', ['provider_id', 'account_id', 'first_owner', 'linked_at'], (insert) =>
    insert.onConflict((conflict) => conflict.doNothing()),
  );

  const readOwners = async (transaction: Database, ids: ReadonlySet<string>): Promise<Map<string, string>> => {
    const found = new Map((await owners.read(transaction, ids)).map((row) => [row.provider_id, row.account_id]));
    if (found.size === ids.size) return found;
    // A row for every provider, so that there is one to lock against the moment somebody claims it.
    const missing = [...ids].filter((id) => !found.has(id)).sort();
    await newOwners.write(
      transaction,
      missing.map((id) => ({ provider_id: id, account_id: unclaimedAccount(id), first_owner: null, linked_at: null })),
    );
    for (const row of await owners.read(transaction, missing)) found.set(row.provider_id, row.account_id);
    return found;
  };

  return async (transaction, needs) => {
    // Locks are taken in this order.
    const jobRows = await jobs.read(transaction, needs.jobs);
    const ownerOf = await readOwners(transaction, needs.providers);
    const withdrawalRows = await withdrawals.read(transaction, needs.withdrawals);
    const depositRows = await deposits.read(transaction, needs.deposits);
    const accounts = new Set(needs.accounts);
    const keyIds = new Set(needs.keys);
    for (const row of jobRows) {
      if (row.state !== 'reserved') continue;
      accounts.add(row.account_id);
      keyIds.add(row.api_key_id);
    }
    for (const account of ownerOf.values()) accounts.add(account);
    for (const row of withdrawalRows) accounts.add(row.account_id);
    const balanceRows = await balances.read(transaction, accounts);
    const keyRows = await keys.read(transaction, keyIds);
    // After the balances: whoever adds to these rows holds the lock of the account's balance.
    const pendingRows = await pending.read(transaction, needs.maturing);
    return {
      jobs: new Map(jobRows.map((row) => [row.job_id, row])),
      owners: ownerOf,
      balances: new Map(balanceRows.map((row) => [row.account, row])),
      keys: new Map(keyRows.map((row) => [row.api_key_id, row])),
      deposits: new Set(depositRows.map((row) => row.event_id)),
      withdrawals: new Map(withdrawalRows.map((row) => [row.id, row])),
      pending: pendingRows,
    };
  };
}

/** The query with its rows locked on PostgreSQL. */
export function locked<DB, TB extends keyof DB, O>(
  database: Database,
  query: SelectQueryBuilder<DB, TB, O>,
  strength: 'update' | 'share',
): SelectQueryBuilder<DB, TB, O> {
  if (dialectOf(database) === 'sqlite') return query;
  return strength === 'update' ? query.forUpdate() : query.forShare();
}
