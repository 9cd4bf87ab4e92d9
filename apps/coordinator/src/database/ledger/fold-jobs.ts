/**
 * `foldJobs`: adds settled jobs to the roll-up tables (sums per minute, hour or window) and to the fee account, in batches.
 *
 * A settlement only puts its job into the queue `unfolded_jobs`, because concurrent settlements would contend for the same rows of sums.
 * The transaction that adds a batch's sums also removes its jobs from the queue, so that a crash neither loses nor doubles jobs.
 */
import { type RawBuilder, sql } from 'kysely';
import { HOUR_MS, MINUTE_MS } from '../../time-units.js';
import { addOnConflict, rowWriter } from '../connection/batch-statements.js';
import { deferSync } from '../connection/deferred-sync.js';
import { type Dialect, dialectOf } from '../connection/dialect.js';
import { withRetries } from '../connection/transaction-retry.js';
import type { Activity } from '../tables/ledger.js';
import type { Database, Tables } from '../tables.js';
import { addActivity, noActivity, PROVIDER_COUNTS, QUARTER_MS } from './activity.js';
import { totalsWriter } from './totals.js';

/** Ledger account of the platform's fees. Its balance lacks the fees of jobs that are not folded yet. */
export const FEES = 'system:fees';

/** Maximum jobs per transaction. Smaller on SQLite, where a transaction blocks this thread. */
const MAX_BATCH_JOBS: Readonly<Record<Dialect, number>> = { sqlite: 1000, postgres: 10_000 };
/** Key of the PostgreSQL advisory lock, by which only one process folds at a time. */
const LOCK = sql.lit(6_230_050);
const RETRY_MS = 10_000;

/** Sums over settled jobs with the same accounts, provider, model and minute. */
interface JobSums {
  readonly account_id: string;
  /** Value of `earner` in `jobs`; null for free jobs. */
  readonly job_earner: string | null;
  /** `job_earner`, or the account to which the unclaimed provider was linked since. */
  readonly earner: string | null;
  readonly provider_id: string;
  readonly model: string;
  /** Minutes since 1970. */
  readonly minute: number;
  readonly jobs: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly images: number;
  readonly cost: number;
  readonly earned: number;
  readonly fee: number;
}

/** Folds the queued jobs. `whileOtherFolds`: whether to return or to wait while another process folds. */
export async function foldJobs(database: Database, whileOtherFolds: 'skip' | 'wait' = 'wait'): Promise<void> {
  while (await hasUnfolded(database)) {
    const folded = await withRetries(
      () => database.transaction().execute((transaction) => foldBatch(transaction, whileOtherFolds)),
      deadline(),
    );
    if (folded < MAX_BATCH_JOBS[dialectOf(database)]) return;
    // Lets other work use the database and the event loop first.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function deadline(): number {
  return Date.now() + RETRY_MS;
}

async function hasUnfolded(database: Database): Promise<boolean> {
  const row = await database.selectFrom('unfolded_jobs').select('job_id').where('job_id', '>', '').limit(1).executeTakeFirst();
  return row !== undefined;
}

/** Folds one batch. Resolves to the number of folded jobs. */
async function foldBatch(transaction: Database, whileOtherFolds: 'skip' | 'wait'): Promise<number> {
  deferSync(transaction);
  const dialect = dialectOf(transaction);
  if (dialect === 'postgres' && !(await lockFold(transaction, whileOtherFolds))) return 0;
  const rows = await takeSums(transaction, MAX_BATCH_JOBS[dialect]);
  if (rows.length === 0) return 0;
  const write = writersOf(dialect);
  // Locks the fee account before the totals, in the order of earlier versions that may run meanwhile.
  const fees = rows.reduce((sum, { fee }) => sum + fee, 0);
  if (fees > 0) await write.balances.write(transaction, [{ account: FEES, balance: fees, reserved: 0, earned: 0 }]);
  await write.addTotals(transaction, minutesOf(rows), hoursOf(rows));
  await write.quarters.write(transaction, quartersOf(rows));
  return rows.reduce((sum, { jobs }) => sum + jobs, 0);
}

/** Resolves to false if another process has the lock and this one does not wait. */
async function lockFold(transaction: Database, whileOtherFolds: 'skip' | 'wait'): Promise<boolean> {
  if (whileOtherFolds === 'wait') {
    await sql`select pg_advisory_xact_lock(${LOCK})`.execute(transaction);
    return true;
  }
  const { rows } = await sql<{ locked: boolean }>`select pg_try_advisory_xact_lock(${LOCK}) as locked`.execute(transaction);
  return rows[0]?.locked === true;
}

/** Removes jobs from the queue and returns their sums. */
async function takeSums(transaction: Database, limit: number): Promise<readonly JobSums[]> {
  const next = sql`select job_id from unfolded_jobs order by job_id limit ${limit}`;
  if (dialectOf(transaction) === 'postgres') {
    // One statement, so that exactly the deleted rows are summed, although other settlements commit meanwhile.
    const taken = sql`with taken as (delete from unfolded_jobs where job_id in (${next}) returning job_id)`;
    await lockTotals(transaction);
    return (await sql<JobSums>`${taken} ${sumsOf(sql`taken`)}`.execute(transaction)).rows;
  }
  const { rows } = await sumsOf(sql`(${next}) as taken`).execute(transaction);
  await sql`delete from unfolded_jobs where job_id in (${next})`.execute(transaction);
  return rows;
}

/** Call before owners are read. Serialises folding with `linkProvider`, which moves the sums of an unclaimed provider. */
async function lockTotals(transaction: Database): Promise<void> {
  await sql`select balance from balances where account = ${FEES} for update`.execute(transaction);
  await sql`select hour from network_totals order by "window" for update`.execute(transaction);
}

function sumsOf(taken: RawBuilder<unknown>): RawBuilder<JobSums> {
  const minute = sql`jobs.ended_at / ${sql.lit(MINUTE_MS)}`;
  const earner = sql`coalesce(owners.first_owner, unclaimed.claimed_by, jobs.earner)`;
  return sql<JobSums>`select jobs.account_id, jobs.earner as job_earner, ${earner} as earner, jobs.provider_id, jobs.model,
      ${minute} as minute, count(*) as jobs, sum(jobs.prompt_tokens) as prompt_tokens, sum(jobs.completion_tokens) as completion_tokens,
      sum(jobs.images) as images, sum(jobs.cost) as cost, sum(jobs.earned) as earned, sum(jobs.fee) as fee
    from ${taken} join jobs on jobs.job_id = taken.job_id
    left join provider_owners as owners on jobs.earner like 'provider:%' and owners.provider_id = substr(jobs.earner, 10)
    left join unclaimed_accounts as unclaimed on unclaimed.account = jobs.earner
    group by jobs.account_id, jobs.earner, ${earner}, jobs.provider_id, jobs.model, ${minute}`;
}

type FoldWriters = ReturnType<typeof foldWriters>;
const WRITERS = new Map<Dialect, FoldWriters>();

function writersOf(dialect: Dialect): FoldWriters {
  let writers = WRITERS.get(dialect);
  if (writers === undefined) {
    writers = foldWriters();
    WRITERS.set(dialect, writers);
  }
  return writers;
}

function foldWriters() {
  const balanceSums = ['balance', 'reserved', 'earned'] as const;
  const quarterKey = ['provider_id', 'quarter', 'model', 'earner'] as const;
  return {
    addTotals: totalsWriter(),
    balances: rowWriter('balances', ['account', ...balanceSums], addOnConflict('balances', ['account'], balanceSums)),
    quarters: rowWriter(
      'machine_quarters',
      [...quarterKey, ...PROVIDER_COUNTS],
      addOnConflict('machine_quarters', quarterKey, PROVIDER_COUNTS),
    ),
  };
}

function minutesOf(rows: readonly JobSums[]): readonly Tables['minute_totals'][] {
  const sums = new Map<number, Tables['minute_totals']>();
  for (const { minute, jobs, prompt_tokens, completion_tokens } of rows) {
    const sum = entryOf(sums, minute, () => ({ minute, requests: 0, prompt_tokens: 0, completion_tokens: 0 }));
    sum.requests += jobs;
    sum.prompt_tokens += prompt_tokens;
    sum.completion_tokens += completion_tokens;
  }
  return [...sums.values()];
}

function hoursOf(rows: readonly JobSums[]): readonly Tables['account_hours'][] {
  const sums = new Map<string, Tables['account_hours']>();
  const add = (account: string, minute: number, activity: Partial<Activity>): void => {
    const hour = Math.floor((minute * MINUTE_MS) / HOUR_MS);
    const sum = entryOf(sums, `${hour} ${account}`, () => ({ hour, account, ...noActivity() }));
    addActivity(sum, { ...noActivity(), ...activity });
  };
  for (const { account_id, earner, minute, jobs, prompt_tokens, completion_tokens, images, cost, earned } of rows) {
    add(account_id, minute, { requests: jobs, prompt_tokens, completion_tokens, images, spent: cost });
    if (earner !== null) add(earner, minute, { served_jobs: jobs, served_tokens: prompt_tokens + completion_tokens, earned });
  }
  return [...sums.values()];
}

function quartersOf(rows: readonly JobSums[]): readonly Tables['machine_quarters'][] {
  const sums = new Map<string, Tables['machine_quarters']>();
  for (const { provider_id, job_earner: earner, model, minute, ...row } of rows) {
    if (earner === null) continue;
    const quarter = Math.floor((minute * MINUTE_MS) / QUARTER_MS);
    const nothing = { jobs: 0, prompt_tokens: 0, completion_tokens: 0, images: 0, earned: 0 };
    const sum = entryOf(sums, JSON.stringify([quarter, provider_id, model, earner]), () => ({
      provider_id,
      quarter,
      model,
      earner,
      ...nothing,
    }));
    for (const name of PROVIDER_COUNTS) sum[name] += row[name];
  }
  return [...sums.values()];
}

function entryOf<Key, Entry>(map: Map<Key, Entry>, key: Key, create: () => Entry): Entry {
  let entry = map.get(key);
  if (entry === undefined) {
    entry = create();
    map.set(key, entry);
  }
  return entry;
}
