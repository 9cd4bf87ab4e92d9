/**
 * Types of the tables of the ledger and its roll-ups (sums per minute, hour, day or window). Amounts are whole micro-USD, times are
 * milliseconds since 1970.
 *
 * `postings` is the source of truth for money, and `jobs` for usage. Balances, sums and roll-ups are derived from them, and
 * `ledger-check` verifies them. Roll-ups and the balance of `system:fees` lack the jobs in `unfolded_jobs`; other derived rows are written
 * in the same transaction as their source.
 *
 * An account in these tables is the id of an `accounts` row, `provider:<provider id>` for earnings of a provider without an owner,
 * or an internal account `system:…` (ledger-policy.ts).
 */
import type { Generated } from 'kysely';

export interface LedgerTables {
  /** Reservations, with their state: `reserved → settled | released`. Of jobs reserved from credit leases, only settled ones have a row. */
  jobs: JobRow;
  /** Settled jobs that are not yet added to the roll-ups and the fee account (fold-jobs.ts). */
  unfolded_jobs: { job_id: string };
  /** Requests that were answered with an error, and cost nothing. Without error message and content. */
  failed_requests: {
    job_id: string;
    account_id: string;
    api_key_id: string;
    /** Null: the network does not know the model, whose name would then be arbitrary text of the client. */
    model: string | null;
    endpoint: string;
    /** The last provider that tried. */
    provider_id: string | null;
    /** 1 in end-to-end mode. */
    is_sealed: number;
    /** Error code of `ERRORS` in packages/formats. */
    code: string;
    latency_ms: number;
    failed_at: number;
  };
  /** Append-only double entries. The rows of an event sum to zero. Old rows are summed in `posting_openings`, then deleted. */
  postings: PostingRow;
  /** Sums of deleted postings per account. All amounts together sum to zero. */
  posting_openings: { account: string; amount: number; earned: number };
  /** Per account: sum of its postings, and sum of its running reservations. */
  balances: BalanceRow;
  /** Amounts spent and reserved per API key, checked against the spend limit and the budget at reservation. */
  key_spend: {
    api_key_id: string;
    spent: number;
    held: number;
    /** Part of `spent` whose job rows were pruned. */
    spent_pruned: number;
    /** Newest day with spending (UTC, days since 1970). The following sums are those of this day, its week and its month. */
    counted_day: number;
    day_spent: number;
    week_spent: number;
    month_spent: number;
  };
  deposits: { event_id: string; account_id: string; amount: number; source: DepositSource; at: number };
  withdrawals: { id: string; account_id: string; amount: number; state: WithdrawalState; requested_at: number; ended_at: number | null };
  /** Account that each provider earns for. */
  provider_owners: {
    provider_id: string;
    account_id: string;
    /** First account that linked the provider, and so got the earnings of `provider:<id>`; null: not linked yet. */
    first_owner: string | null;
    linked_at: number | null;
  };
  /** All prices ever set. Rows are never changed. The newest whose `valid_from` has passed applies. */
  prices: {
    id: string;
    /** `*`: every model without its own price. */
    model: string;
    prompt_per_million: number;
    /** Null: the rate of other prompt tokens. */
    cached_per_million: number | null;
    completion_per_million: number;
    per_image: number;
    valid_from: number;
    /** Orders prices with equal `valid_from`; the highest applies. */
    version: number;
  };

  /** Settled jobs of the network per minute (minutes since 1970). Stored for two days. */
  minute_totals: { minute: number; requests: number; prompt_tokens: number; completion_tokens: number };
  /** Usage and earnings per account and hour (hours since 1970). Old rows are summed in hour `-1`. */
  account_hours: { hour: number; account: string } & Activity;
  /** Sums of `account_hours` per statistics window, for active accounts. Indexes exist for the orders of the leaderboard. */
  account_totals: { window: StatsWindow; account: string } & Activity;
  /** Totals of the network, one row per statistics window. `hour`: newest hour of the window (hours since 1970). */
  network_totals: { window: StatsWindow; hour: number; active_accounts: number } & Activity;

  /** Jobs per provider, model, earner and quarter of an hour, which suits all time zones. Stored for a hundred days. */
  machine_quarters: {
    provider_id: string;
    /** Quarters of an hour since 1970. */
    quarter: number;
    model: string;
    earner: string;
    jobs: number;
    prompt_tokens: number;
    completion_tokens: number;
    images: number;
    earned: number;
  };

  /**
   * Earnings per account and UTC day (`day`: days since 1970), for maturity. Spending changes no row, because matured earnings are spent
   * first.
   */
  pending_earnings: { account: string; day: number; amount: number };
  /** Earnings per account, payer and UTC day, for a hundred days. Older rows of unclaimed providers are summed in day `-1`. */
  payer_earnings: {
    /** Value of `earner` in `jobs`, or the account to which the unclaimed provider was linked since. */
    earner: string;
    /** Paying account, never the earner. */
    payer: string;
    day: number;
    earned: number;
    /** Part of `earned` that the payer paid from deposited money. Becomes deposited money again if the payer links the provider. */
    of_deposits: number;
  };

  /**
   * `…_pruned_before`: rows before this time may be deleted. `earnings_pending_since`: earnings before this time have no rows in
   * `pending_earnings`, and are treated as matured.
   */
  ledger_marks: { name: 'jobs_pruned_before' | 'postings_pruned_before' | 'earnings_pending_since'; at: number };
  /** Parts of balances from which coordinators reserve in memory (credit-leases.ts). Settlements reduce the amount by their costs. */
  credit_leases: {
    id: string;
    account: string;
    /** Coordinator, as in `jobs.holder`. */
    holder: string;
    amount: number;
    /** Part reserved by running jobs at the last renewal. */
    in_use: number;
    /** Expiry by the database's clock. */
    expires_at: number;
    /** 1 while another coordinator waits for the unused part. */
    is_recalled: number;
  };
  /** Last heartbeat of each coordinator (reservation-holders.ts). */
  ledger_holders: { id: string; seen_at: number };
}

/** Activity of an account or of the network in a time span, from settled jobs. */
export interface Activity {
  /** Number of jobs that the account requested. The following four members are their usage and cost. */
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  images: number;
  spent: number;
  /** Number of paid jobs of the account's providers. The following members are their tokens (prompt and completion) and earnings. */
  served_jobs: number;
  served_tokens: number;
  earned: number;
}

/** Statistics windows. A window ends with the running hour and has whole hours, so `24h` covers 24 to 25 hours. */
export type StatsWindow = '24h' | '7d' | '30d' | 'all';
type JobState = 'reserved' | 'settled' | 'released';
export type DepositSource = 'stripe' | 'development' | 'admin';
export type WithdrawalState = 'requested' | 'paid' | 'rejected';

export interface JobRow {
  job_id: string;
  account_id: string;
  api_key_id: string;
  model: string;
  endpoint: string;
  state: JobState;
  /** Maximum cost, reserved while the state is `reserved`. */
  amount: number;
  /** Price at the reservation. The rates are copied, so that later changes of prices have no effect. */
  price_id: string;
  prompt_per_million: number;
  /** Null: the rate of other prompt tokens. */
  cached_per_million: number | null;
  completion_per_million: number;
  per_image: number;
  /** Maximums to which the counts of the settlement are limited. */
  max_prompt_tokens: number;
  max_completion_tokens: number;
  max_images: number;
  /** Coordinator that runs the job (`ledger_holders.id`). */
  holder: string;
  reserved_at: number;
  /** Time of the settlement or release. */
  ended_at: number | null;
  /** Null or zero unless the job is settled, like all columns below. */
  provider_id: string | null;
  /** Credited account; null: a free job on a provider of the requesting account. */
  earner: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  /** Completion tokens inside think segments. */
  hidden_tokens: number;
  cached_tokens: number;
  images: number;
  /** `cost = earned + fee` */
  cost: number;
  earned: number;
  fee: number;
}

export interface PostingRow {
  seq: Generated<number>;
  /** `job:<id>`, `deposit:<id>`, `withdrawal:<id>:requested|paid|rejected`, `link:<provider>:<time>` */
  event: string;
  account: string;
  /** Positive amounts increase the balance. */
  amount: number;
  /** Part of the amount that is earnings and can be withdrawn; never deposited money. */
  earned: number;
  at: number;
}

export interface BalanceRow {
  account: string;
  balance: number;
  /** Sum of `amount` over jobs in state `reserved`, and over credit leases. */
  reserved: number;
  /** Part of the balance that is earnings. Spending takes deposited money first. */
  earned: number;
}
