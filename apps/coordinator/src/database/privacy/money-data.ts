/** Data inventory (`StoredTable`): tables of requests, ledger, payments and statistics. */
import { type RawBuilder, sql } from 'kysely';
import { ofAccount, type RowsOf, type StoredTable } from './stored-table.js';

const BOOKS = 'stays under the random id: bookkeeping';
const FOR_GOOD = 'unlimited: bookkeeping';
const SHORT_LIVED = 'seconds to minutes, while requests run';

const COUNTS = 'requests prompt_tokens completion_tokens images spent served_jobs served_tokens earned';

/** Condition: `column` is the id of a row of `table` that belongs to the account. */
const ofOwn = (column: string, table: string): RowsOf => {
  return (id) => sql<boolean>`${sql.ref(column)} in (select id from ${sql.table(table)} where account_id = ${id})`;
};

/** SQL query of the ledger accounts with earnings of the account: its own, and those of its machines before they were linked. */
function earnersOf(id: string): RawBuilder<unknown> {
  return sql`select account from unclaimed_accounts where claimed_by = ${id}
    union all select 'provider:' || provider_id from provider_owners where first_owner = ${id}
    union all select id from accounts where id = ${id}`;
}

/** SQL query of the provider ids of machines that are or were linked to the account. */
function allMachinesOf(id: string): RawBuilder<unknown> {
  return sql`select provider_id from provider_owners where account_id = ${id} or first_owner = ${id}
    union select provider_id from machine_tokens where account_id = ${id} and provider_id is not null
    union select provider_id from unclaimed_accounts where claimed_by = ${id}`;
}

export const MONEY_DATA = {
  jobs: {
    about: 'Usage: one row per request with model, token counts, price, machine and times. Neither prompt nor output.',
    columns: {
      activity:
        'job_id account_id api_key_id model endpoint state amount price_id prompt_per_million cached_per_million completion_per_million ' +
        'per_image max_prompt_tokens max_completion_tokens max_images reserved_at ended_at provider_id prompt_tokens completion_tokens ' +
        'hidden_tokens cached_tokens images cost earned fee',
      others: 'earner',
      technical: 'holder',
    },
    retention: '`USAGE_RETENTION_DAYS`',
    // The state is a literal, because a parameter would prevent the use of the partial index on settled jobs.
    exported: { rows: (id) => sql<boolean>`(account_id = ${id} and state = 'settled')`, key: ['ended_at', 'job_id'] },
    afterDeletion: BOOKS,
  },
  unfolded_jobs: {
    about: 'Ids of requests whose amounts are not yet in the sums.',
    columns: { activity: 'job_id' },
    retention: 'seconds',
    exported: 'the requests themselves are in `jobs`',
    afterDeletion: 'removed at the end of its retention',
  },
  failed_requests: {
    about: 'Requests that ended with an error: code and times, so that clients can find the cause. Neither message nor content.',
    columns: { activity: 'job_id account_id api_key_id model endpoint provider_id is_sealed code latency_ms failed_at' },
    retention: 'the newest 2,000 per account; `USAGE_RETENTION_DAYS`, `RETENTION_FAILED_REQUESTS_DAYS`',
    exported: { rows: ofAccount('account_id'), key: ['failed_at', 'job_id'] },
    afterDeletion: 'removed',
    erasures: [{ rows: ofAccount('account_id') }],
  },
  receipts: {
    about: 'Signed receipts of requests: ids, digests, counts and times, with which a client proves what a machine answered.',
    columns: { activity: 'job_id account_id receipt receipt_signature response_signature created_at' },
    retention: 'the newest 200,000 of the network; `RETENTION_RECEIPTS_DAYS`',
    exported: { rows: ofAccount('account_id'), key: ['created_at', 'job_id'] },
    afterDeletion: 'removed, within an hour',
  },
  postings: {
    about: 'The ledger: double entries of requests, deposits and withdrawals.',
    columns: { activity: 'seq event account amount earned at' },
    retention: FOR_GOOD,
    exported: 'repeats the amounts of `jobs`, `deposits` and `withdrawals`',
    afterDeletion: BOOKS,
  },
  posting_openings: {
    about: 'Sums of ledger entries that `USAGE_RETENTION_DAYS` removed.',
    columns: { activity: 'account amount earned' },
    retention: FOR_GOOD,
    exported: { rows: ofAccount('account'), key: ['account'] },
    afterDeletion: BOOKS,
  },
  balances: {
    about: 'Balance of each account.',
    columns: { activity: 'account balance reserved earned' },
    retention: FOR_GOOD,
    exported: { rows: ofAccount('account'), key: ['account'] },
    afterDeletion: BOOKS,
  },
  key_spend: {
    about: 'Spending of each API key, for its limit and budget.',
    columns: { activity: 'api_key_id spent held spent_pruned counted_day day_spent week_spent month_spent' },
    retention: FOR_GOOD,
    exported: { rows: ofOwn('api_key_id', 'api_keys'), key: ['api_key_id'] },
    afterDeletion: BOOKS,
  },
  deposits: {
    about: 'Credited deposits. The event id of a deposit by hand contains the reference that the operator wrote.',
    columns: { activity: 'event_id account_id amount source at' },
    retention: FOR_GOOD,
    exported: { rows: ofAccount('account_id'), key: ['event_id'] },
    afterDeletion: BOOKS,
  },
  deposit_orders: {
    about: 'Deposits from the checkout on, with the ids under which the payment processor knows them, for refunds and disputes.',
    columns: {
      activity: 'id account_id amount_micro_usd source state checkout_id payment_id created_at ended_at refunded_micro_usd disputed_at',
    },
    retention: FOR_GOOD,
    exported: { rows: ofAccount('account_id'), key: ['id'] },
    afterDeletion: `${BOOKS}. The processor’s ids: \`RETENTION_CLOSED_ACCOUNTS_DAYS\``,
  },
  payment_events: {
    about: 'Handled reports of the payment processor, so that none counts twice.',
    columns: { activity: 'id type deposit_id outcome received_at' },
    retention: FOR_GOOD,
    exported: { rows: ofOwn('deposit_id', 'deposit_orders'), key: ['id'] },
    afterDeletion: BOOKS,
  },
  withdrawals: {
    about: 'Requested and paid withdrawals of earnings.',
    columns: { activity: 'id account_id amount state requested_at ended_at' },
    retention: FOR_GOOD,
    exported: { rows: ofAccount('account_id'), key: ['id'] },
    afterDeletion: BOOKS,
  },
  withdrawal_ends: {
    about: 'How a withdrawal ended, with the id of the processor’s transfer.',
    columns: { activity: 'withdrawal_id end transfer_id claimed_at' },
    retention: FOR_GOOD,
    exported: { rows: ofOwn('withdrawal_id', 'withdrawals'), key: ['withdrawal_id'] },
    afterDeletion: `${BOOKS}. The processor’s id: \`RETENTION_CLOSED_ACCOUNTS_DAYS\``,
  },
  payout_accounts: {
    about: 'Account at the payment processor to which withdrawals are paid.',
    columns: { activity: 'account_id payout_id created_at' },
    retention: 'while the account exists',
    exported: { rows: ofAccount('account_id'), key: ['account_id'] },
    afterDeletion: 'removed; if a withdrawal is still open, within an hour after its end',
    erasures: [
      {
        rows: (id) =>
          sql<boolean>`(account_id = ${id}
            and not exists (select 1 from withdrawals where withdrawals.account_id = ${id} and withdrawals.state = 'requested'))`,
      },
    ],
  },
  account_totals: {
    about: 'Sums of use and earnings per account and window. The leaderboard shows them under a pseudonym.',
    columns: { activity: `window account ${COUNTS}` },
    retention: 'unlimited',
    exported: { rows: (id) => sql<boolean>`("window" in ('24h', '7d', '30d', 'all') and account = ${id})`, key: ['window'] },
    afterDeletion: 'stays under the random id',
  },
  account_hours: {
    about: 'The same per hour, from which the sums of the windows are computed.',
    columns: { activity: `hour account ${COUNTS}` },
    retention: '31 days, then one sum',
    exported: 'repeats the amounts of `jobs`; the sums are in `account_totals`',
    afterDeletion: 'stays under the random id',
  },
  machine_quarters: {
    about: 'Requests and earnings of each machine per quarter of an hour and model, for its owner’s charts.',
    columns: { activity: 'provider_id quarter model earner jobs prompt_tokens completion_tokens images earned' },
    retention: '100 days',
    exported: {
      rows: (id) => sql<boolean>`(provider_id in (${allMachinesOf(id)}) and earner in (${earnersOf(id)}))`,
      key: ['provider_id', 'quarter', 'model', 'earner'],
    },
    afterDeletion: 'stays under random ids for 100 days',
  },
  pending_earnings: {
    about: 'Earnings per day that cannot be withdrawn yet.',
    columns: { activity: 'account day amount' },
    retention: 'about a year',
    exported: { rows: ofAccount('account'), key: ['account', 'day'] },
    afterDeletion: 'stays under the random id for about a year',
  },
  payer_earnings: {
    about: 'Who earned how much from whom per day, to detect people who pay themselves.',
    columns: { activity: 'earner day earned of_deposits', others: 'payer' },
    retention: '100 days; of machines without an owner until someone links them',
    exported: 'names other accounts; the own amounts are in `jobs` and `machine_quarters`',
    afterDeletion: 'stays under random ids for 100 days',
  },
  credit_leases: {
    about: 'Parts of a balance that a coordinator reserves in memory.',
    columns: { activity: 'id account amount in_use expires_at is_recalled', technical: 'holder' },
    retention: SHORT_LIVED,
    exported: 'part of `balances`',
    afterDeletion: 'removed at the end of its retention',
  },
  ledger_holders: {
    about: 'Running coordinators.',
    columns: { technical: 'id seen_at' },
    retention: 'while they run',
    exported: 'about no account',
    afterDeletion: 'not affected',
  },
  ledger_marks: {
    about: 'Up to when old rows were removed.',
    columns: { technical: 'name at' },
    retention: 'unlimited',
    exported: 'about no account',
    afterDeletion: 'not affected',
  },
  prices: {
    about: 'All prices ever set.',
    columns: { technical: 'id model prompt_per_million cached_per_million completion_per_million per_image valid_from version' },
    retention: 'unlimited',
    exported: 'about no account',
    afterDeletion: 'not affected',
  },
  minute_totals: {
    about: 'Requests and tokens of the whole network per minute.',
    columns: { technical: 'minute requests prompt_tokens completion_tokens' },
    retention: '2 days',
    exported: 'about no account',
    afterDeletion: 'not affected',
  },
  network_totals: {
    about: 'Sums of the whole network.',
    columns: { technical: `window hour active_accounts ${COUNTS}` },
    retention: 'unlimited',
    exported: 'about no account',
    afterDeletion: 'not affected',
  },
} as const satisfies Readonly<Record<string, StoredTable>>;
