/**
 * Writes what a batch of ledger steps changed, set by set. New jobs and deposits are plain inserts: where another coordinator
 * was faster, the transaction fails as a whole and is tried again on what is there then. Rows that were locked are replaced;
 * to rows that were not there, and to the ledger's own accounts, which nobody locks, is only added.
 */
import { addOnConflict, replaceOnConflict, rowWriter } from '../connection/prepared-statements.js';
import type { BalanceRow, JobRow, PostingRow } from '../tables/ledger.js';
import type { Database, Tables } from '../tables.js';
import { MACHINE_COUNTS } from './activity.js';
import { JOB_COLUMNS, WITHDRAWAL_COLUMNS } from './columns.js';
import { type AccountHour, type MinuteCounts, totalsWriter } from './totals.js';

export interface Changes {
  readonly newJobs: readonly JobRow[];
  readonly changedJobs: readonly JobRow[];
  readonly newDeposits: readonly Tables['deposits'][];
  readonly newWithdrawals: readonly Tables['withdrawals'][];
  readonly changedWithdrawals: readonly Tables['withdrawals'][];
  readonly postings: readonly Omit<PostingRow, 'seq'>[];
  /** Rows of the ground, as they are now. */
  readonly balances: readonly BalanceRow[];
  readonly keys: readonly Tables['key_spend'][];
  /** What to add to rows that the ground did not have, as is everything below. */
  readonly addedBalances: readonly BalanceRow[];
  readonly addedKeys: readonly Tables['key_spend'][];
  readonly minutes: readonly MinuteCounts[];
  readonly hours: readonly AccountHour[];
  readonly quarters: readonly Tables['machine_quarters'][];
  readonly pending: readonly Tables['pending_earnings'][];
  readonly payers: readonly Tables['payer_earnings'][];
}

export type WriteChanges = (transaction: Database, changes: Changes) => Promise<void>;

const ENDING_COLUMNS = JOB_COLUMNS.slice(JOB_COLUMNS.indexOf('ended_at'));

/** Makes the writer for one database. Call it inside the transaction that loaded the ground. */
export function changesWriter(): WriteChanges {
  const newJobs = rowWriter('jobs', JOB_COLUMNS);
  const changedJobs = rowWriter('jobs', JOB_COLUMNS, replaceOnConflict(['job_id'], ['state', ...ENDING_COLUMNS]));
  const deposits = rowWriter('deposits', ['event_id', 'account_id', 'amount', 'source', 'at']);
  const newWithdrawals = rowWriter('withdrawals', WITHDRAWAL_COLUMNS);
  const changedWithdrawals = rowWriter('withdrawals', WITHDRAWAL_COLUMNS, replaceOnConflict(['id'], ['state', 'ended_at']));
  const postings = rowWriter('postings', ['event', 'account', 'amount', 'earned', 'at']);
  const balanceColumns = ['balance', 'reserved', 'earned'] as const;
  const balances = rowWriter('balances', ['account', ...balanceColumns], replaceOnConflict(['account'], balanceColumns));
  const addedBalances = rowWriter('balances', ['account', ...balanceColumns], addOnConflict('balances', ['account'], balanceColumns));
  const spendColumns = ['spent', 'held', 'spent_pruned'] as const;
  const keys = rowWriter('key_spend', ['api_key_id', ...spendColumns], replaceOnConflict(['api_key_id'], spendColumns));
  const addedKeys = rowWriter('key_spend', ['api_key_id', ...spendColumns], addOnConflict('key_spend', ['api_key_id'], spendColumns));
  const quarterKey = ['provider_id', 'quarter', 'model', 'earner'] as const;
  const quarters = rowWriter(
    'machine_quarters',
    [...quarterKey, ...MACHINE_COUNTS],
    addOnConflict('machine_quarters', quarterKey, MACHINE_COUNTS),
  );
  const pending = rowWriter(
    'pending_earnings',
    ['account', 'day', 'amount'],
    addOnConflict('pending_earnings', ['account', 'day'], ['amount']),
  );
  const payerKey = ['earner', 'payer', 'day'] as const;
  const payerSums = ['earned', 'of_deposits'] as const;
  const payers = rowWriter('payer_earnings', [...payerKey, ...payerSums], addOnConflict('payer_earnings', payerKey, payerSums));
  const totals = totalsWriter();

  return async (transaction, changes) => {
    // Locks are taken in this order.
    await newJobs.write(transaction, sorted(changes.newJobs, 'job_id'));
    await changedJobs.write(transaction, sorted(changes.changedJobs, 'job_id'));
    await deposits.write(transaction, sorted(changes.newDeposits, 'event_id'));
    await newWithdrawals.write(transaction, sorted(changes.newWithdrawals, 'id'));
    await changedWithdrawals.write(transaction, sorted(changes.changedWithdrawals, 'id'));
    await postings.write(transaction, changes.postings);
    await balances.write(transaction, changes.balances);
    await keys.write(transaction, changes.keys);
    await addedBalances.write(transaction, sorted(changes.addedBalances, 'account'));
    await addedKeys.write(transaction, sorted(changes.addedKeys, 'api_key_id'));
    if (changes.hours.length > 0) await totals(transaction, changes.minutes, changes.hours);
    // After the totals, whose rows are locked first: so two writers of the same quarter take turns.
    await quarters.write(transaction, changes.quarters);
    await pending.write(transaction, changes.pending);
    await payers.write(transaction, changes.payers);
  };
}

function sorted<Row>(rows: readonly Row[], key: keyof Row): readonly Row[] {
  if (rows.length < 2) return rows;
  return [...rows].sort((a, b) => (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0));
}
