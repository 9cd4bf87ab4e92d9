/**
 * `LedgerRepository`: loads and stores the rows of a batch of ledger steps (reserve, settle, deposit, …) inside one transaction.
 *
 * To avoid deadlocks, loading locks the tables in this order, and the rows of each by key: nonces, jobs, providers, withdrawals, balances,
 * API keys, leases. Storing inserts the rows that loading did not find, in the same order.
 */
import type { JobId, ProviderId } from '@inference/protocol';
import { addOnConflict, IdQuery, recordUpdater, recordWriter, replaceOnConflict, rowWriter } from '../connection/batch-statements.js';
import { locked } from '../connection/row-lock.js';
import { type SealedNonce, SealedNonceRepository } from '../sealed-nonce-repository.js';
import type { BalanceRow, JobRow } from '../tables/ledger.js';
import type { Database, Tables } from '../tables.js';
import {
  type AccountBalance,
  balanceFromRow,
  bindJob,
  bindJobEnd,
  bindJobTerms,
  type DepositRecord,
  depositToRow,
  type EarningsDay,
  JOB_COLUMNS,
  JOB_END_COLUMNS,
  JOB_TERMS_COLUMNS,
  jobFromRow,
  type KeySpend,
  keySpendFromRow,
  keySpendToRow,
  type LeaseAmount,
  type LedgerJob,
  type PayerDay,
  type Posting,
  payerDayToRow,
  type WithdrawalRecord,
  withdrawalFromRow,
  withdrawalToRow,
} from './ledger-records.js';
import { unclaimedAccount } from './unclaimed-accounts.js';

/**
 * Keys of the rows that a batch needs. Also loaded: accounts of the reserved jobs, the providers and the withdrawals, and API keys of the
 * reserved jobs.
 */
export interface RowKeys {
  /** Nonces of sealed requests, by digest. Loading stores new ones. */
  readonly nonces: Map<string, SealedNonce>;
  readonly jobs: Set<JobId>;
  readonly providers: Set<ProviderId>;
  readonly accounts: Set<string>;
  readonly apiKeys: Set<string>;
  readonly leases: Set<string>;
  readonly deposits: Set<string>;
  readonly withdrawals: Set<string>;
  /** Accounts whose earnings per day are needed. */
  readonly earningsDays: Set<string>;
}

/** Stored records that a batch needs. All but deposits and days of earnings are locked until the batch's transaction ends. */
export interface LockedRows {
  /** Job that used each nonce, by digest; null: stored by an earlier version. */
  readonly nonces: ReadonlyMap<string, JobId | null>;
  readonly jobs: ReadonlyMap<JobId, LedgerJob>;
  /** Account that each provider earns for, possibly an unclaimed one (of a provider without owner). */
  readonly owners: ReadonlyMap<ProviderId, string>;
  readonly balances: ReadonlyMap<string, AccountBalance>;
  readonly keys: ReadonlyMap<string, KeySpend>;
  readonly leases: ReadonlyMap<string, LeaseAmount>;
  readonly deposits: ReadonlySet<string>;
  readonly withdrawals: ReadonlyMap<string, WithdrawalRecord>;
  readonly earningsDays: readonly EarningsDay[];
}

export interface LedgerChanges {
  /** Digests of nonces to delete, because loading has stored them for jobs that do not run. */
  readonly unusedNonces: readonly string[];
  readonly newJobs: readonly LedgerJob[];
  readonly changedJobs: readonly LedgerJob[];
  readonly newDeposits: readonly DepositRecord[];
  readonly newWithdrawals: readonly WithdrawalRecord[];
  readonly changedWithdrawals: readonly WithdrawalRecord[];
  readonly postings: readonly Posting[];
  /** New values of locked rows. */
  readonly balances: readonly AccountBalance[];
  readonly keys: readonly KeySpend[];
  readonly leases: readonly LeaseAmount[];
  /** Rows that did not exist when the batch was loaded. If a row exists by now, the amounts are added. */
  readonly addedBalances: readonly AccountBalance[];
  /** As `addedBalances`. */
  readonly addedKeys: readonly KeySpend[];
  /** Amounts to add to the day's row, which need not exist. */
  readonly earningsDays: readonly EarningsDay[];
  /** As `earningsDays`. */
  readonly payerDays: readonly PayerDay[];
}

const WITHDRAWAL_COLUMNS = [
  'id',
  'account_id',
  'amount',
  'state',
  'requested_at',
  'ended_at',
] as const satisfies readonly (keyof Tables['withdrawals'])[];
const BALANCE_SUMS = ['balance', 'reserved', 'earned'] as const;
const KEY_SUMS = ['spent', 'held', 'spent_pruned'] as const;
const KEY_COLUMNS = [...KEY_SUMS, 'counted_day', 'day_spent', 'week_spent', 'month_spent'] as const;
const PAYER_KEY = ['earner', 'payer', 'day'] as const;
const PAYER_SUMS = ['earned', 'of_deposits'] as const;

/** An instance caches SQL compiled for its first database, so each database needs its own instance. */
export class LedgerRepository {
  readonly #read = ledgerQueries();
  readonly #write = ledgerWriters();
  readonly #nonces = new SealedNonceRepository();

  /** Loads and locks the rows, and stores new nonces. Call inside the transaction that stores the changes. */
  async load(transaction: Database, keys: RowKeys): Promise<LockedRows> {
    const nonces = await this.#nonces.take(transaction, keys.nonces.values());
    const jobs = (await this.#read.jobs.read(transaction, keys.jobs)).map(jobFromRow);
    const owners = await this.#loadOwners(transaction, keys.providers);
    const withdrawals = (await this.#read.withdrawals.read(transaction, keys.withdrawals)).map(withdrawalFromRow);
    const deposits = await this.#read.deposits.read(transaction, keys.deposits);
    const accounts = new Set(keys.accounts);
    const apiKeys = new Set(keys.apiKeys);
    for (const job of jobs) {
      if (job.state !== 'reserved') continue;
      accounts.add(job.reservation.accountId);
      apiKeys.add(job.reservation.apiKeyId);
    }
    for (const account of owners.values()) accounts.add(account);
    for (const { accountId } of withdrawals) accounts.add(accountId);
    const balances = (await this.#read.balances.read(transaction, accounts)).map(balanceFromRow);
    const keySpends = (await this.#read.keys.read(transaction, apiKeys)).map(keySpendFromRow);
    const leases = await this.#read.leases.read(transaction, keys.leases);
    // Read after the balances. These rows need no lock of their own, because their writers hold the lock of the account's balance.
    const earningsDays = await this.#read.earningsDays.read(transaction, keys.earningsDays);
    return {
      nonces,
      jobs: new Map(jobs.map((job) => [job.reservation.jobId, job])),
      owners,
      balances: new Map(balances.map((balance) => [balance.account, balance])),
      keys: new Map(keySpends.map((key) => [key.apiKeyId, key])),
      leases: new Map(leases.map((lease) => [lease.id, lease])),
      deposits: new Set(deposits.map((row) => row.event_id)),
      withdrawals: new Map(withdrawals.map((withdrawal) => [withdrawal.id, withdrawal])),
      earningsDays,
    };
  }

  /** Stores the changes. If another coordinator has inserted the same job or deposit, the transaction fails, and the caller retries. */
  async store(transaction: Database, changes: LedgerChanges): Promise<void> {
    const write = this.#write;
    await this.#nonces.giveBack(transaction, changes.unusedNonces);
    // Writes follow the order of locks.
    await write.newJobs.write(transaction, sortedJobs(changes.newJobs));
    // Not sorted, because these rows are locked since loading.
    await write.changedJobs.write(transaction, changes.changedJobs);
    const isRepriced = (job: LedgerJob): boolean => job.state === 'settled' && job.isRepriced === true;
    await write.repricedJobs.write(transaction, changes.changedJobs.filter(isRepriced));
    const isSettled = (job: LedgerJob): boolean => job.state === 'settled';
    await write.unfoldedJobs.write(transaction, [...changes.newJobs.filter(isSettled), ...changes.changedJobs.filter(isSettled)]);
    await write.deposits.write(transaction, sortRows(changes.newDeposits.map(depositToRow), 'event_id'));
    await write.newWithdrawals.write(transaction, sortRows(changes.newWithdrawals.map(withdrawalToRow), 'id'));
    await write.changedWithdrawals.write(transaction, sortRows(changes.changedWithdrawals.map(withdrawalToRow), 'id'));
    await write.postings.write(transaction, changes.postings);
    await write.balances.write(transaction, changes.balances);
    await write.addedBalances.write(transaction, sortRows(changes.addedBalances, 'account'));
    await write.keys.write(transaction, changes.keys.map(keySpendToRow));
    await write.addedKeys.write(transaction, sortRows(changes.addedKeys.map(keySpendToRow), 'api_key_id'));
    await write.leases.write(transaction, changes.leases);
    // Writers of the same rows hold the locks of the balances.
    await write.earningsDays.write(transaction, changes.earningsDays);
    await write.payerDays.write(transaction, changes.payerDays.map(payerDayToRow));
  }

  async #loadOwners(transaction: Database, ids: ReadonlySet<ProviderId>): Promise<Map<ProviderId, string>> {
    const read = async (ids: Iterable<ProviderId>): Promise<(readonly [ProviderId, string])[]> =>
      (await this.#read.owners.read(transaction, ids)).map((row) => [row.provider_id as ProviderId, row.account_id]);
    const owners = new Map(await read(ids));
    if (owners.size === ids.size) return owners;
    // A provider without a row gets one, whose lock makes a concurrent `linkProvider` wait.
    const missing = [...ids].filter((id) => !owners.has(id)).sort();
    await this.#write.newOwners.write(
      transaction,
      missing.map((id) => ({ provider_id: id, account_id: unclaimedAccount(id), first_owner: null, linked_at: null })),
    );
    for (const [id, account] of await read(missing)) owners.set(id, account);
    return owners;
  }
}

function ledgerQueries() {
  return {
    jobs: new IdQuery<JobRow>((database, ids) =>
      locked(database, database.selectFrom('jobs').select(JOB_COLUMNS).where('job_id', 'in', ids).orderBy('job_id'), 'update'),
    ),
    owners: new IdQuery<{ provider_id: string; account_id: string }>((database, ids) =>
      locked(
        database,
        database.selectFrom('provider_owners').select(['provider_id', 'account_id']).where('provider_id', 'in', ids).orderBy('provider_id'),
        'share',
      ),
    ),
    balances: new IdQuery<BalanceRow>((database, ids) =>
      locked(
        database,
        database
          .selectFrom('balances')
          .select(['account', ...BALANCE_SUMS])
          .where('account', 'in', ids)
          .orderBy('account'),
        'update',
      ),
    ),
    keys: new IdQuery<Tables['key_spend']>((database, ids) =>
      locked(
        database,
        database
          .selectFrom('key_spend')
          .select(['api_key_id', ...KEY_COLUMNS])
          .where('api_key_id', 'in', ids)
          .orderBy('api_key_id'),
        'update',
      ),
    ),
    leases: new IdQuery<LeaseAmount>((database, ids) =>
      locked(database, database.selectFrom('credit_leases').select(['id', 'amount']).where('id', 'in', ids).orderBy('id'), 'update'),
    ),
    deposits: new IdQuery<{ event_id: string }>((database, ids) =>
      database.selectFrom('deposits').select('event_id').where('event_id', 'in', ids),
    ),
    withdrawals: new IdQuery<Tables['withdrawals']>((database, ids) =>
      locked(database, database.selectFrom('withdrawals').select(WITHDRAWAL_COLUMNS).where('id', 'in', ids).orderBy('id'), 'update'),
    ),
    earningsDays: new IdQuery<Tables['pending_earnings']>((database, ids) =>
      database.selectFrom('pending_earnings').select(['account', 'day', 'amount']).where('account', 'in', ids),
    ),
  };
}

function ledgerWriters() {
  return {
    newJobs: recordWriter('jobs', JOB_COLUMNS, bindJob),
    changedJobs: recordUpdater('jobs', JOB_END_COLUMNS, bindJobEnd),
    repricedJobs: recordUpdater('jobs', JOB_TERMS_COLUMNS, bindJobTerms),
    unfoldedJobs: recordWriter('unfolded_jobs', ['job_id'], (job: LedgerJob, parameters) => {
      parameters.push(job.reservation.jobId);
    }),
    deposits: rowWriter('deposits', ['event_id', 'account_id', 'amount', 'source', 'at']),
    newWithdrawals: rowWriter('withdrawals', WITHDRAWAL_COLUMNS),
    changedWithdrawals: rowWriter('withdrawals', WITHDRAWAL_COLUMNS, replaceOnConflict(['id'], ['state', 'ended_at'])),
    postings: rowWriter('postings', ['event', 'account', 'amount', 'earned', 'at']),
    balances: rowWriter('balances', ['account', ...BALANCE_SUMS], replaceOnConflict(['account'], BALANCE_SUMS)),
    addedBalances: rowWriter('balances', ['account', ...BALANCE_SUMS], addOnConflict('balances', ['account'], BALANCE_SUMS)),
    leases: recordUpdater(
      'credit_leases',
      [
        ['id', 'text'],
        ['amount', 'bigint'],
      ],
      ({ id, amount }: LeaseAmount, parameters) => {
        parameters.push(id, amount);
      },
    ),
    keys: rowWriter('key_spend', ['api_key_id', ...KEY_COLUMNS], replaceOnConflict(['api_key_id'], KEY_COLUMNS)),
    // Adds no period sums. A transaction with a cost holds the balance's lock, so transactions that conflict here have no cost.
    addedKeys: rowWriter('key_spend', ['api_key_id', ...KEY_COLUMNS], addOnConflict('key_spend', ['api_key_id'], KEY_SUMS)),
    earningsDays: rowWriter(
      'pending_earnings',
      ['account', 'day', 'amount'],
      addOnConflict('pending_earnings', ['account', 'day'], ['amount']),
    ),
    payerDays: rowWriter('payer_earnings', [...PAYER_KEY, ...PAYER_SUMS], addOnConflict('payer_earnings', PAYER_KEY, PAYER_SUMS)),
    newOwners: rowWriter('provider_owners', ['provider_id', 'account_id', 'first_owner', 'linked_at'], (insert) =>
      insert.onConflict((conflict) => conflict.doNothing()),
    ),
  };
}

function sortedJobs(jobs: readonly LedgerJob[]): readonly LedgerJob[] {
  if (jobs.length < 2) return jobs;
  return [...jobs].sort((a, b) => (a.reservation.jobId < b.reservation.jobId ? -1 : 1));
}

function sortRows<Row>(rows: readonly Row[], key: keyof Row): readonly Row[] {
  if (rows.length < 2) return rows;
  return [...rows].sort((a, b) => (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0));
}
