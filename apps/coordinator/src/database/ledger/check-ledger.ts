/**
 * `checkLedger`: recomputes balances, reservations and roll-ups (sums per hour, day or window) from postings and jobs, and describes
 * differences. All queries read one snapshot of the database.
 */
import { sql } from 'kysely';
import { DAY_MS, HOUR_MS } from '../../time-units.js';
import { dialectOf } from '../connection/dialect.js';
import type { Database } from '../tables.js';
import { ACTIVITY, MAX_MATURITY_DAYS, QUARTER_MS, RETAINED_PAYER_DAYS, RETAINED_QUARTERS, WINDOWS } from './activity.js';
import { BUDGET_PERIODS, PERIOD_COLUMNS, periodStart } from './key-budget.js';
import { oldestHour } from './totals.js';

/** Row counts, and sums in micro-USD. */
export interface LedgerFigures {
  readonly postings: number;
  readonly events: number;
  readonly accounts: number;
  readonly jobs: number;
  /** Number of jobs in state `reserved`. */
  readonly holds: number;
  /** Sum of the maximum costs of these jobs. */
  readonly held: number;
  /** Sum of the balances of customers and providers. */
  readonly owed: number;
  /** Balance of the fee account, including the fees of jobs that `foldJobs` has not added yet. */
  readonly fees: number;
  readonly hours: number;
}

interface LedgerReport {
  readonly figures: LedgerFigures;
  /** One text per problem; empty if the ledger is correct. Of each kind, the first {@link MAX_NAMED} and the number of others. */
  readonly problems: readonly string[];
}

const MAX_NAMED = 20;
/** Excludes the oldest day of quarters, which a concurrent pruning may be deleting. */
const QUARTERS_CHECKED = RETAINED_QUARTERS - 96;
/** A reservation is abandoned if its coordinator's heartbeat is older than the newest one by this time. */
const ABANDONED_AFTER_MS = 300_000;

export async function checkLedger(database: Database): Promise<LedgerReport> {
  // SQLite's transactions are always serializable.
  const isolated = database.transaction();
  const transaction = dialectOf(database) === 'postgres' ? isolated.setIsolationLevel('repeatable read') : isolated;
  return transaction.execute(async (view) => {
    const problems: string[] = [];
    const report = (kind: string, rows: readonly Record<string, unknown>[]): void => {
      for (const row of rows.slice(0, MAX_NAMED)) problems.push(`${kind}: ${JSON.stringify(row)}`);
      if (rows.length > MAX_NAMED) problems.push(`${kind}: and ${rows.length - MAX_NAMED} more`);
    };
    for (const [kind, query] of [...moneyChecks(), ...reservationChecks(), ...usageChecks(), ...earningChecks()])
      report(kind, await rowsOf(view, query));
    for (const [kind, query] of await periodChecks(view)) report(kind, await rowsOf(view, query));
    for (const [kind, query] of await windowChecks(view)) report(kind, await rowsOf(view, query));
    return { figures: await ledgerFigures(view), problems };
  });
}

/** Description of a problem, and a query that returns a row per case. */
type Check = readonly [kind: string, query: ReturnType<typeof sql<Record<string, unknown>>>];
const check = sql<Record<string, unknown>>;

async function rowsOf(view: Database, query: Check[1]): Promise<readonly Record<string, unknown>[]> {
  return (await query.execute(view)).rows;
}

function moneyChecks(): Check[] {
  // `substr` strips the prefix of one id. Adding the prefix to the other id would prevent the use of its index.
  return [
    ['an event does not sum to zero', check`select event, sum(amount) as sum from postings group by event having sum(amount) <> 0`],
    ['the pruned postings do not sum to zero', check`select sum(amount) as sum from posting_openings having sum(amount) <> 0`],
    ['an event has postings of several times', check`select event from postings group by event having min(at) <> max(at)`],
    [
      'a balance is not the sum of its postings',
      check`select account, sum(amount) as balance_less_postings, sum(earned) as earnings_less_postings from (
          select account, balance as amount, earned from balances
          union all select 'system:fees', jobs.fee, 0 from unfolded_jobs join jobs on jobs.job_id = unfolded_jobs.job_id
          union all select account, -amount, -earned from postings
          union all select account, -amount, -earned from posting_openings
        ) as parts group by account having sum(amount) <> 0 or sum(earned) <> 0`,
    ],
    [
      'a job waits to be folded and is not settled',
      check`select unfolded_jobs.job_id, jobs.state from unfolded_jobs left join jobs on jobs.job_id = unfolded_jobs.job_id
        where coalesce(jobs.state, '') <> 'settled'`,
    ],
    [
      'a balance does not cover its reservations, or its earnings',
      check`select account, balance, reserved, earned from balances
        where account not like 'system:%' and (reserved < 0 or balance < reserved or earned < 0 or earned > balance)`,
    ],
    [
      'an account of the network is negative',
      check`select account, balance from balances where account in ('system:fees', 'system:withdrawals') and balance < 0`,
    ],
    [
      'a charged job has no event, or an event with other amounts',
      check`select jobs.job_id, jobs.fee, posted.fee as posted from jobs left join (
          select event, sum(case when account = 'system:fees' then amount else 0 end) as fee from postings where event like 'job:%' group by event
        ) as posted on posted.event = 'job:' || jobs.job_id
        where jobs.state = 'settled' and jobs.cost > 0 and coalesce(posted.fee, -1) <> jobs.fee
          and not (posted.event is not null and posted.fee = 0 and jobs.fee = 0)
          and not (posted.event is null and jobs.earner = jobs.account_id and jobs.fee = 0)
          and jobs.ended_at >= coalesce((select at from ledger_marks where name = 'postings_pruned_before'), 0)`,
    ],
    [
      'an event belongs to no charged job',
      check`select distinct postings.event from postings left join jobs on jobs.job_id = substr(postings.event, 5) and jobs.state = 'settled'
        where postings.event like 'job:%' and jobs.job_id is null
          and postings.at >= coalesce((select at from ledger_marks where name = 'jobs_pruned_before'), 0)`,
    ],
    [
      'a deposit has no event with its amount',
      check`select deposits.event_id, deposits.amount from deposits
        left join postings on postings.event = 'deposit:' || deposits.event_id and postings.account = deposits.account_id
        where coalesce(postings.amount, -1) <> deposits.amount
          and deposits.at >= coalesce((select at from ledger_marks where name = 'postings_pruned_before'), 0)`,
    ],
    [
      'requested withdrawals differ from the withdrawals account',
      check`select coalesce((select sum(amount) from withdrawals where state = 'requested'), 0) as requested,
          coalesce((select balance from balances where account = 'system:withdrawals'), 0) as set_aside
        where coalesce((select sum(amount) from withdrawals where state = 'requested'), 0)
          <> coalesce((select balance from balances where account = 'system:withdrawals'), 0)`,
    ],
  ];
}

function reservationChecks(): Check[] {
  return [
    [
      'the reserved amount of an account differs from its jobs',
      check`select account, sum(amount) as reserved_less_holds from (
          select account, reserved as amount from balances
          union all select account_id, -amount from jobs where state = 'reserved'
          union all select account, -amount from credit_leases
        ) as parts group by account having sum(amount) <> 0`,
    ],
    [
      'the reserved or spent amount of a key differs from its jobs',
      check`select api_key_id, sum(held) as held_less_holds, sum(spent) as spent_less_costs from (
          select api_key_id, held, spent - spent_pruned as spent from key_spend
          union all select api_key_id, case when state = 'reserved' then -amount else 0 end, -cost from jobs
        ) as parts group by api_key_id having sum(held) <> 0 or sum(spent) <> 0`,
    ],
    [
      'a reservation belongs to a dead coordinator',
      check`select job_id, holder, reserved_at from jobs where state = 'reserved' and coalesce(
          (select seen_at from ledger_holders where id = jobs.holder), reserved_at
        ) < (select coalesce(max(seen_at), 0) from ledger_holders) - ${sql.lit(ABANDONED_AFTER_MS)}`,
    ],
  ];
}

/**
 * Checks that the spending sums of keys cover their jobs in the newest day, week and month.
 *
 * A sum may be larger, because a settlement after the end of its period is added to the next period.
 */
async function periodChecks(view: Database): Promise<Check[]> {
  const { newest } = await view
    .selectFrom('key_spend')
    .select((select) => select.fn.max('counted_day').as('newest'))
    .executeTakeFirstOrThrow();
  return BUDGET_PERIODS.map((period): Check => {
    const start = periodStart(period, newest ?? 0);
    const spent = sql.ref(PERIOD_COLUMNS[period]);
    return [
      `the spending of a key in its ${period} is less than its jobs`,
      check`select used.api_key_id, used.cost, ${spent} as counted, counted_day from (
          select api_key_id, sum(cost) as cost from jobs where state = 'settled' and ended_at >= ${sql.lit(start * DAY_MS)} group by api_key_id
        ) as used left join key_spend on key_spend.api_key_id = used.api_key_id
        where used.cost > case when coalesce(counted_day, 0) >= ${sql.lit(start)} then ${spent} else 0 end`,
    ];
  });
}

/** Compares roll-ups with the rows of folded jobs, for hours without pruned jobs. Sums of accounts are compared for 720 hours only. */
function usageChecks(): Check[] {
  const folded = sql`not exists (select 1 from unfolded_jobs where unfolded_jobs.job_id = jobs.job_id)`;
  const wholeFrom = sql`coalesce((select at + ${sql.lit(HOUR_MS - 1)} from ledger_marks where name = 'jobs_pruned_before'), 0) / ${sql.lit(HOUR_MS)}`;
  const hour = sql`jobs.ended_at / ${sql.lit(HOUR_MS)}`;
  const quarter = sql`jobs.ended_at / ${sql.lit(QUARTER_MS)}`;
  const quarterFrom = sql`coalesce((select at + ${sql.lit(QUARTER_MS - 1)} from ledger_marks where name = 'jobs_pruned_before'), 0) / ${sql.lit(QUARTER_MS)}`;
  return [
    [
      'an hour of an account differs from its jobs',
      check`select hour, account, sum(requests) as requests, sum(tokens) as tokens, sum(spent) as spent,
          sum(served_jobs) as served_jobs, sum(served_tokens) as served_tokens, sum(earned) as earned from (
          select hour, account, requests, prompt_tokens + completion_tokens as tokens, spent, served_jobs, served_tokens, earned
            from account_hours where hour >= ${wholeFrom}
          union all select ${hour}, account_id, -1, -prompt_tokens - completion_tokens, -cost, 0, 0, 0
            from jobs where state = 'settled' and ${hour} >= ${wholeFrom} and ${folded}
          union all select ${hour}, coalesce(owners.first_owner, unclaimed.claimed_by, jobs.earner), 0, 0, 0, -1, -prompt_tokens - completion_tokens, -earned
            from jobs left join provider_owners as owners
              on jobs.earner like 'provider:%' and owners.provider_id = substr(jobs.earner, 10)
            left join unclaimed_accounts as unclaimed on unclaimed.account = jobs.earner
            where state = 'settled' and jobs.earner is not null and ${hour} >= ${wholeFrom} and ${folded}
        ) as parts where hour >= (select coalesce(max(hour), 0) - 720 from network_totals) group by hour, account
        having sum(requests) <> 0 or sum(tokens) <> 0 or sum(spent) <> 0
          or sum(served_jobs) <> 0 or sum(served_tokens) <> 0 or sum(earned) <> 0`,
    ],
    [
      'a quarter of an hour of a machine differs from its jobs',
      check`select quarter, provider_id, model, earner, sum(jobs) as jobs, sum(tokens) as tokens, sum(images) as images,
          sum(earned) as earned from (
          select quarter, provider_id, model, earner, jobs, prompt_tokens + completion_tokens as tokens, images, earned
            from machine_quarters
          union all select ${quarter}, provider_id, model, earner, -1, -prompt_tokens - completion_tokens, -images, -earned
            from jobs where state = 'settled' and earner is not null and ${folded}
        ) as parts where quarter >= ${quarterFrom} and quarter > (select coalesce(max(quarter), 0) from machine_quarters) - ${sql.lit(QUARTERS_CHECKED)}
        group by quarter, provider_id, model, earner
        having sum(jobs) <> 0 or sum(tokens) <> 0 or sum(images) <> 0 or sum(earned) <> 0`,
    ],
  ];
}

/** Compares earnings per day and per payer with job rows, for days in which no job was pruned. */
function earningChecks(): Check[] {
  const dayMs = sql.lit(DAY_MS);
  const day = sql`jobs.ended_at / ${dayMs}`;
  const wholeFrom = sql`coalesce((select at + ${sql.lit(DAY_MS - 1)} from ledger_marks where name = 'jobs_pruned_before'), 0) / ${dayMs}`;
  const pendingFrom = sql`coalesce((select at / ${dayMs} + 1 from ledger_marks where name = 'earnings_pending_since'), 0)`;
  const newest = sql`(select coalesce(max("hour"), 0) * ${sql.lit(HOUR_MS)} / ${dayMs} from network_totals)`;
  const earner = sql`coalesce(owners.first_owner, unclaimed.claimed_by, jobs.earner)`;
  const earnings = (columns: ReturnType<typeof sql>) => sql`select ${columns} from jobs
      left join provider_owners as owners on jobs.earner like 'provider:%' and owners.provider_id = substr(jobs.earner, 10)
      left join unclaimed_accounts as unclaimed on unclaimed.account = jobs.earner
      where jobs.state = 'settled' and jobs.earner is not null and jobs.earned > 0 and ${earner} <> jobs.account_id`;
  return [
    [
      'the earnings of an account on a day differ from its jobs',
      check`select account, day, sum(amount) as amount_less_jobs from (
          select account, day, amount from pending_earnings
          union all ${earnings(sql`${earner}, ${day}, -jobs.earned`)}
        ) as parts where day >= ${wholeFrom} and day >= ${pendingFrom} and day > ${newest} - ${sql.lit(MAX_MATURITY_DAYS)}
        group by account, day having sum(amount) <> 0`,
    ],
    [
      'the earnings of an account from a payer differ from its jobs',
      check`select earner, payer, day, sum(earned) as earned_less_jobs from (
          select earner, payer, day, earned from payer_earnings
          union all ${earnings(sql`${earner}, jobs.account_id, ${day}, -jobs.earned`)}
        ) as parts where day >= ${wholeFrom} and day > ${newest} - ${sql.lit(RETAINED_PAYER_DAYS - 1)}
        group by earner, payer, day having sum(earned) <> 0`,
    ],
    [
      'an account earned more from deposited money than it earned',
      check`select earner, payer, day, earned, of_deposits from payer_earnings where of_deposits < 0 or of_deposits > earned`,
    ],
  ];
}

/** Compares the totals of each statistics window with the sum of its hours, per account and for the network. */
async function windowChecks(view: Database): Promise<Check[]> {
  const network = await view.selectFrom('network_totals').selectAll().execute();
  const checks: Check[] = [];
  if (network.length !== WINDOWS.length)
    checks.push(['the network does not have one total per window', check`select "window" from network_totals`]);
  for (const total of network) {
    const from = total.window === 'all' ? -1 : oldestHour(total.window, total.hour);
    const sums = (sign: string) => sql.join(ACTIVITY.map((column) => sql`${sql.raw(sign)}sum(${sql.ref(column)}) as ${sql.ref(column)}`));
    const columns = sql.join(ACTIVITY.map((column) => sql.ref(column)));
    const differ = sql.join(
      ACTIVITY.map((column) => sql`sum(${sql.ref(column)}) <> 0`),
      sql` or `,
    );
    checks.push([
      `an account's total of ${total.window} is not the sum of its hours`,
      check`select account, ${sums('')} from (
          select account, ${columns} from account_totals where "window" = ${total.window}
          union all select account, ${sums('-')} from account_hours where hour >= ${from} group by account
        ) as parts group by account having ${differ}`,
    ]);
    checks.push([
      `the network's total of ${total.window} is not the sum of its accounts`,
      check`select ${sums('')}, sum(active_accounts) as active_accounts from (
          select active_accounts, ${columns} from network_totals where "window" = ${total.window}
          union all select -count(*), ${sums('-')} from account_totals where "window" = ${total.window}
        ) as parts having ${differ} or sum(active_accounts) <> 0`,
    ]);
  }
  return checks;
}

export async function ledgerFigures(view: Database): Promise<LedgerFigures> {
  const { rows } = await sql<LedgerFigures>`select
      (select count(*) from postings) as postings,
      (select count(distinct event) from postings) as events,
      (select count(*) from balances) as accounts,
      (select count(*) from jobs) as jobs,
      (select count(*) from jobs where state = 'reserved') as holds,
      (select coalesce(sum(amount), 0) from jobs where state = 'reserved') as held,
      (select coalesce(sum(balance), 0) from balances where account not like 'system:%') as owed,
      (select coalesce(sum(balance), 0) from balances where account = 'system:fees')
        + (select coalesce(sum(jobs.fee), 0) from unfolded_jobs join jobs on jobs.job_id = unfolded_jobs.job_id) as fees,
      (select count(*) from account_hours) as hours`.execute(view);
  const [first] = rows;
  if (first === undefined) throw new Error('the query returned no row');
  return first;
}
