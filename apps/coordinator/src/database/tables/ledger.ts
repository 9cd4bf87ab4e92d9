/**
 * Tables of the ledger and its roll-ups. Amounts are whole micro-USD, times milliseconds since 1970.
 *
 * `postings` is the source for money, `jobs` for usage; all others are projections, which `ledger-check` verifies. Roll-ups
 * and the balance of `system:fees` exclude `unfolded_jobs`. Other projections are written with their source.
 *
 * Keys of accounts: id of an `accounts` row, `provider:<provider id>` for unclaimed earnings, or `system:…` (ledger-policy.ts).
 */
import type { Generated } from 'kysely';

export interface LedgerTables {
  /** Every reservation: `reserved → settled | released`. **A settled row is the usage entry.** Old ended rows are pruned. */
  jobs: JobRow;
  /** Settled jobs whose sums are not yet in the roll-ups and in the fee account (`fold-jobs.ts`). */
  unfolded_jobs: { job_id: string };
  /** Requests that were answered with an error, and cost nothing. Neither message nor content. */
  failed_requests: {
    job_id: string;
    account_id: string;
    api_key_id: string;
    /** Null: no model of the network; then the name is arbitrary text of the client. */
    model: string | null;
    endpoint: string;
    /** The last provider that tried. */
    provider_id: string | null;
    /** 1 in end-to-end mode. */
    is_sealed: number;
    /** Row of the error table (packages/formats). */
    code: string;
    latency_ms: number;
    failed_at: number;
  };
  /** Append-only double entry. Rows of an event sum to zero. Old rows are folded into `posting_openings`. */
  postings: PostingRow;
  /** Per account, the sums of pruned postings. All amounts together sum to zero. */
  posting_openings: { account: string; amount: number; earned: number };
  /** Per account, the sum of its postings and of its running reservations. `system:fees` lacks the fees of unfolded jobs. */
  balances: BalanceRow;
  /** Amounts spent and reserved per API key, checked against the spend limit and the budget at reservation. */
  key_spend: {
    api_key_id: string;
    spent: number;
    held: number;
    /** Part of `spent` with pruned job rows. */
    spent_pruned: number;
    /** Newest day (UTC, days since 1970) with spending. The three sums are of the day, week and month of this day. */
    counted_day: number;
    day_spent: number;
    week_spent: number;
    month_spent: number;
  };
  deposits: { event_id: string; account_id: string; amount: number; source: DepositSource; at: number };
  withdrawals: {
    id: string;
    account_id: string;
    amount: number;
    state: WithdrawalState;
    requested_at: number;
    ended_at: number | null;
  };
  /** Account of a provider's earnings. `first_owner` claimed the earlier earnings, which old job rows name `provider:<id>`. */
  provider_owners: { provider_id: string; account_id: string; first_owner: string | null; linked_at: number | null };
  /** All prices ever set, immutable. The newest with `valid_from` not after now applies. */
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
    /** Order of setting, for prices with equal `valid_from`. */
    version: number;
  };

  /** Settled jobs per minute of the network. `minute`: milliseconds since 1970 / 60,000. Retained for two days. */
  minute_totals: { minute: number; requests: number; prompt_tokens: number; completion_tokens: number };
  /** Usage and earnings per account and hour (milliseconds since 1970 / 3,600,000). Old rows are folded into hour `-1`. */
  account_hours: { hour: number; account: string } & Activity;
  /** Sums of `account_hours` per window, if any. The leaderboard's orders are indexed: `earned`, `served_tokens`, `served_jobs`. */
  account_totals: { window: StatsWindow; account: string } & Activity;
  /**
   * Totals of the network per window: four rows, `all` for the lifetime.
   *
   * `hour`: newest hour of the window.
   */
  network_totals: { window: StatsWindow; hour: number; active_accounts: number } & Activity;

  /** Jobs per provider, quarter of an hour (for time zones), model and earner. Retained for a hundred days. */
  machine_quarters: {
    provider_id: string;
    /** Milliseconds since 1970 divided by 900,000. */
    quarter: number;
    model: string;
    earner: string;
    jobs: number;
    prompt_tokens: number;
    completion_tokens: number;
    images: number;
    earned: number;
  };

  /** Earnings per account and UTC day, for maturity. Unchanged by spending, which takes matured earnings first. */
  pending_earnings: { account: string /** Milliseconds since 1970 divided by 86,400,000. */; day: number; amount: number };
  /** Earnings per account, payer and UTC day, for a hundred days; older rows of unclaimed providers are in day `-1`. */
  payer_earnings: {
    /** Earner of `jobs`, or the account that has since claimed the provider. */
    earner: string;
    /** Paying account, never the earner. */
    payer: string;
    day: number;
    earned: number;
    /** Part of `earned` that the payer paid from deposited money. Returned as deposited money if the payer claims the provider. */
    of_deposits: number;
  };

  /**
   * `…_pruned_before`: earlier rows may be removed. `earnings_pending_since`: earlier earnings predate maturity, and count as
   * matured.
   */
  ledger_marks: { name: 'jobs_pruned_before' | 'postings_pruned_before' | 'earnings_pending_since'; at: number };
  /** Parts of balances that coordinators reserve from in memory (`credit-leases.ts`). Settlements lower the amount by their costs. */
  credit_leases: {
    id: string;
    account: string;
    /** Coordinator, as `jobs.holder`. */
    holder: string;
    amount: number;
    /** Part reserved by running jobs at the last renewal. */
    in_use: number;
    /** Expiry by the database's clock. */
    expires_at: number;
    /** 1 while another coordinator waits for the unused part. */
    is_recalled: number;
  };
  /** Coordinators with reservations, and their last heartbeats. */
  ledger_holders: { id: string; seen_at: number };
}

/** Activity of an account or of the network in a time span. Counts are of settled jobs. */
export interface Activity {
  /** Jobs that the account requested, with their usage and cost. */
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  images: number;
  spent: number;
  /** Paid jobs of the account's providers, their prompt and completion tokens, and the earnings. */
  served_jobs: number;
  served_tokens: number;
  earned: number;
}

/** Windows end with the running hour, which counts in full: `24h` covers 24 to 25 hours. */
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
  /** Price at reservation, copied, so later changes have no effect. */
  price_id: string;
  prompt_per_million: number;
  /** Null: the rate of other prompt tokens. */
  cached_per_million: number | null;
  completion_per_million: number;
  per_image: number;
  /** Maximums of the job, which its settlement is clamped to. */
  max_prompt_tokens: number;
  max_completion_tokens: number;
  max_images: number;
  /** Coordinator that runs the job (`ledger_holders.id`). */
  holder: string;
  reserved_at: number;
  /** Time of the settlement or release. */
  ended_at: number | null;
  /** Null or zero unless the job is settled, as are the columns below. */
  provider_id: string | null;
  /** Credited account (keyed as in this file); null for a free job on an own provider. */
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
