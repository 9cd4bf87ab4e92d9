/** `ledgerSummary`: quick check of balances and reservations, for the operator's API. `checkLedger` is the full check. */
import { sql } from 'kysely';
import type { Database } from '../tables.js';

/** All amounts in micro-USD. */
export interface LedgerSummary {
  /** Sum of the balances of customers and providers. */
  readonly owed: number;
  /** Sum of the open reservations and credit leases. */
  readonly held: number;
  /** Balance of the network's fee account, including the fees of jobs that `foldJobs` has not added yet. */
  readonly fees: number;
  /** Sum of the requested withdrawals that have not ended. */
  readonly requestedWithdrawals: number;
  readonly accounts: number;
  /** Number of jobs in state `reserved`. Jobs reserved from credit leases have no row yet. */
  readonly runningHolds: number;
  /** One sentence per problem; empty if all sums agree. */
  readonly problems: readonly string[];
}

interface Sums {
  readonly total: number;
  readonly owed: number;
  readonly reserved: number;
  readonly fees: number;
  readonly set_aside: number;
  readonly accounts: number;
  readonly uncovered: number;
}

export async function ledgerSummary(database: Database): Promise<LedgerSummary> {
  // One statement reads one snapshot, so that a concurrent settlement does not look like a difference.
  const { rows } = await sql<Sums & { held: number; holds: number; requested: number; unfolded_fees: number }>`select
      coalesce(sum(balance), 0) as total,
      coalesce(sum(case when account not like 'system:%' then balance else 0 end), 0) as owed,
      coalesce(sum(reserved), 0) as reserved,
      coalesce(sum(case when account = 'system:fees' then balance else 0 end), 0) as fees,
      coalesce(sum(case when account = 'system:withdrawals' then balance else 0 end), 0) as set_aside,
      coalesce(sum(case when account not like 'system:%' then 1 else 0 end), 0) as accounts,
      coalesce(sum(case when account not like 'system:%' and (reserved < 0 or balance < reserved or earned < 0 or earned > balance)
        then 1 else 0 end), 0) as uncovered,
      (select coalesce(sum(jobs.fee), 0) from unfolded_jobs join jobs on jobs.job_id = unfolded_jobs.job_id) as unfolded_fees,
      (select coalesce(sum(amount), 0) from jobs where state = 'reserved')
        + (select coalesce(sum(amount), 0) from credit_leases) as held,
      (select count(*) from jobs where state = 'reserved') as holds,
      (select coalesce(sum(amount), 0) from withdrawals where state = 'requested') as requested
    from balances`.execute(database);
  const [sums] = rows;
  if (sums === undefined) throw new Error('the query returned no row');
  const total = sums.total + sums.unfolded_fees;
  const problems = [
    ...(total === 0 ? [] : [`All balances together are ${total} micro-USD, and should be 0.`]),
    ...(sums.uncovered === 0 ? [] : [`${sums.uncovered} balances do not cover their reservations, or their earnings.`]),
    ...(sums.reserved === sums.held
      ? []
      : [`Accounts have ${sums.reserved} micro-USD reserved, but running jobs and credit leases add up to ${sums.held}.`]),
    ...(sums.requested === sums.set_aside
      ? []
      : [`Requested withdrawals are ${sums.requested} micro-USD, and ${sums.set_aside} are set aside for them.`]),
  ];
  return {
    owed: sums.owed,
    held: sums.held,
    fees: sums.fees + sums.unfolded_fees,
    requestedWithdrawals: sums.requested,
    accounts: sums.accounts,
    runningHolds: sums.holds,
    problems,
  };
}
