/**
 * `pruneHistory`: deletes old jobs and postings, and roll-up rows (sums per minute, hour or day) after fixed times, in small transactions.
 *
 * Where balances or totals need the deleted rows, their sums stay: in `key_spend.spent_pruned`, in `posting_openings`, and in one row per
 * account of `account_hours`.
 */
import { sql } from 'kysely';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../time-units.js';
import { locked } from '../connection/row-lock.js';
import type { Database, Tables } from '../tables.js';
import {
  ACTIVITY,
  FOLDED_DAY,
  FOLDED_HOUR,
  MAX_MATURITY_DAYS,
  QUARTER_MS,
  RETAINED_PAYER_DAYS,
  RETAINED_QUARTERS,
  WINDOW_HOURS,
} from './activity.js';
import { foldJobs } from './fold-jobs.js';
import { lockNetwork } from './totals.js';

/** Rows per transaction of jobs or postings. Few, so that concurrent work does not wait long. */
const SLICE = 500;
const RETAINED_MINUTES = 2 * 24 * 60;
const RETAINED_PENDING_DAYS = MAX_MATURITY_DAYS + 2;

/** Numbers of deleted rows. */
interface Pruned {
  readonly jobs: number;
  readonly postings: number;
  /** Rows of `account_hours`. */
  readonly hours: number;
}

/** Deletes jobs and postings before a time (milliseconds since 1970; 0: none). May be repeated, interrupted, and run concurrently. */
export async function pruneHistory(database: Database, before: number, signal?: AbortSignal): Promise<Pruned> {
  const repeatUntilDone = async (prune: () => Promise<number>): Promise<number> => {
    let all = 0;
    for (let count = await prune(); count > 0; count = await prune()) {
      all += count;
      signal?.throwIfAborted();
      // Lets other work use the database and the event loop first.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return all;
  };
  await foldJobs(database);
  await storeMark(database, 'jobs_pruned_before', before);
  const jobs = await repeatUntilDone(() => database.transaction().execute((transaction) => pruneJobs(transaction, before)));
  await storeMark(database, 'postings_pruned_before', before);
  const postings = await repeatUntilDone(() => database.transaction().execute((transaction) => foldPostings(transaction, before)));
  const hours = await foldHours(database, repeatUntilDone);
  return { jobs, postings, hours };
}

/** Records the pruning limit. Stored before the deletion, because `checkLedger` skips comparisons with rows before the limit. */
async function storeMark(database: Database, name: Tables['ledger_marks']['name'], at: number): Promise<void> {
  await database
    .insertInto('ledger_marks')
    .values({ name, at })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ at }).where('ledger_marks.at', '<', at))
    .execute();
}

async function pruneJobs(transaction: Database, before: number): Promise<number> {
  const oldest = transaction
    .selectFrom('jobs')
    .select('job_id')
    .where('ended_at', '<', before)
    // A settlement may have queued a job after the call of `foldJobs`.
    .where('job_id', 'not in', (select) => select.selectFrom('unfolded_jobs').select('unfolded_jobs.job_id'))
    .orderBy('ended_at')
    .limit(SLICE);
  const rows = await locked(
    transaction,
    transaction.selectFrom('jobs').select(['job_id', 'api_key_id', 'cost']).where('job_id', 'in', oldest).orderBy('job_id'),
    'update',
  ).execute();
  if (rows.length === 0) return 0;
  const spent = new Map<string, number>();
  for (const row of rows) if (row.cost > 0) spent.set(row.api_key_id, (spent.get(row.api_key_id) ?? 0) + row.cost);
  for (const [key, amount] of [...spent].sort(([a], [b]) => (a < b ? -1 : 1))) {
    await transaction
      .updateTable('key_spend')
      .set((set) => ({ spent_pruned: set('spent_pruned', '+', amount) }))
      .where('api_key_id', '=', key)
      .execute();
  }
  await transaction
    .deleteFrom('jobs')
    .where(
      'job_id',
      'in',
      rows.map((row) => row.job_id),
    )
    .execute();
  return rows.length;
}

/** Deletes about {@link SLICE} postings. All postings of an event have one time, so whole events are deleted, which sum to zero. */
async function foldPostings(transaction: Database, before: number): Promise<number> {
  // Serialises coordinators, because two could add the same postings to the sums.
  await locked(
    transaction,
    transaction.selectFrom('ledger_marks').selectAll().where('name', '=', 'postings_pruned_before'),
    'update',
  ).execute();
  const times = await transaction.selectFrom('postings').select('at').where('at', '<', before).orderBy('at').limit(SLICE).execute();
  const last = times.at(-1);
  if (last === undefined) return 0;
  const rows = await transaction.selectFrom('postings').select(['seq', 'account', 'amount', 'earned']).where('at', '<=', last.at).execute();
  const sums = new Map<string, { account: string; amount: number; earned: number }>();
  for (const { account, amount, earned } of rows) {
    const sum = sums.get(account) ?? { account, amount: 0, earned: 0 };
    sums.set(account, { account, amount: sum.amount + amount, earned: sum.earned + earned });
  }
  for (const sum of sums.values()) {
    await transaction
      .insertInto('posting_openings')
      .values(sum)
      .onConflict((conflict) =>
        conflict.column('account').doUpdateSet((set) => ({
          amount: set('posting_openings.amount', '+', set.ref('excluded.amount')),
          earned: set('posting_openings.earned', '+', set.ref('excluded.earned')),
        })),
      )
      .execute();
  }
  // Deletes by `seq`, not by time, because a posting of the same time may have been added since.
  for (let start = 0; start < rows.length; start += SLICE) {
    const seqs = rows.slice(start, start + SLICE).map((row) => row.seq);
    await transaction.deleteFrom('postings').where('seq', 'in', seqs).execute();
  }
  return rows.length;
}

/** Deletes old roll-up rows. Resolves to the number of deleted rows of `account_hours`. */
async function foldHours(database: Database, repeatUntilDone: (prune: () => Promise<number>) => Promise<number>): Promise<number> {
  const { hour: newest } = await database.selectFrom('network_totals').select('hour').where('window', '=', '30d').executeTakeFirstOrThrow();
  const oldest = newest - (WINDOW_HOURS['30d'] ?? 0);
  const minute = Math.floor((newest * HOUR_MS) / MINUTE_MS) - RETAINED_MINUTES;
  await database.deleteFrom('minute_totals').where('minute', '<', minute).execute();
  const quarter = Math.floor((newest * HOUR_MS) / QUARTER_MS) - RETAINED_QUARTERS;
  await database.deleteFrom('machine_quarters').where('quarter', '<', quarter).execute();
  const today = Math.floor((newest * HOUR_MS) / DAY_MS);
  await database
    .deleteFrom('pending_earnings')
    .where('day', '<', today - RETAINED_PENDING_DAYS)
    .execute();
  const hours = await repeatUntilDone(() => database.transaction().execute((transaction) => foldHour(transaction, oldest)));
  await repeatUntilDone(() => database.transaction().execute((transaction) => foldPayerDay(transaction, today - RETAINED_PAYER_DAYS)));
  return hours;
}

/** Deletes one day of `payer_earnings`. Keeps sums of providers without owner, because their next owner may be the payer. */
async function foldPayerDay(transaction: Database, before: number): Promise<number> {
  await lockNetwork(transaction);
  const first = await transaction
    .selectFrom('payer_earnings')
    .select('day')
    .where('day', '>', FOLDED_DAY)
    .where('day', '<', before)
    .orderBy('day')
    .limit(1)
    .executeTakeFirst();
  if (first === undefined) return 0;
  await sql`
    insert into payer_earnings (earner, payer, day, earned, of_deposits)
    select earner, payer, cast(${FOLDED_DAY} as bigint), earned, of_deposits from payer_earnings
    where day = ${first.day} and earner like 'provider:%'
    on conflict (earner, payer, day) do update set
      earned = payer_earnings.earned + excluded.earned, of_deposits = payer_earnings.of_deposits + excluded.of_deposits`.execute(
    transaction,
  );
  const deleted = await transaction.deleteFrom('payer_earnings').where('day', '=', first.day).executeTakeFirst();
  return Number(deleted.numDeletedRows);
}

/** Adds one hour that is older than all windows to the row {@link FOLDED_HOUR}, and deletes it. */
async function foldHour(transaction: Database, oldest: number): Promise<number> {
  await lockNetwork(transaction);
  const first = await transaction
    .selectFrom('account_hours')
    .select('hour')
    .where('hour', '>', FOLDED_HOUR)
    .where('hour', '<', oldest)
    .orderBy('hour')
    .limit(1)
    .executeTakeFirst();
  if (first === undefined) return 0;
  const counts = sql.join(ACTIVITY.map((name) => sql.ref(name)));
  const added = sql.join(
    ACTIVITY.map((name) => sql`${sql.ref(name)} = ${sql.ref(`account_hours.${name}`)} + ${sql.ref(`excluded.${name}`)}`),
  );
  await sql`
    insert into account_hours (hour, account, ${counts})
    select cast(${FOLDED_HOUR} as bigint), account, ${counts} from account_hours where hour = ${first.hour}
    on conflict (hour, account) do update set ${added}`.execute(transaction);
  const deleted = await transaction.deleteFrom('account_hours').where('hour', '=', first.hour).executeTakeFirst();
  return Number(deleted.numDeletedRows);
}
