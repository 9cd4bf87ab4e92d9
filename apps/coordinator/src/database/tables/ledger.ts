/**
 * Tables of money and of what is counted from it. Amounts are integers of micro-USD, times integer milliseconds. `postings`
 * is the truth about money and `jobs` about use; everything else here is a projection of them, written in the same
 * transaction, and `scripts/ledger-check` holds the projections against their sources.
 *
 * The key of an account in these tables is a text: the id of an `accounts` row, `provider:<provider id>` for the earnings of
 * a provider that nobody has claimed yet, or one of the ledger's own accounts `system:…` (ledger/system-accounts.ts).
 */
import type { Generated } from 'kysely';

export interface LedgerTables {
  /**
   * One row per job that was ever reserved, and the whole state machine `reserved → settled | released`. **A settled row is
   * the usage entry**: newest first by `(ended_at, job_id)`, index `jobs_by_account` on settled rows. Old ended rows are
   * pruned; no total depends on them.
   */
  jobs: JobRow;
  /** Append-only double entry. Rows of one event sum to zero. Old rows are folded into `posting_openings`. */
  postings: PostingRow;
  /** Per account, the sums of the postings that were pruned. All amounts together sum to zero. */
  posting_openings: { account: string; amount: number; earned: number };
  /** Per account, the sum of its postings, and the sum of its live holds. */
  balances: BalanceRow;
  /** Per API key, what it has spent, and what its running jobs hold. Compared with the key's spend limit at reservation. */
  key_spend: { api_key_id: string; spent: number; held: number /** Part of `spent` whose job rows are pruned. */; spent_pruned: number };
  deposits: { event_id: string; account_id: string; amount: number; source: DepositSource; at: number };
  withdrawals: {
    id: string;
    account_id: string;
    amount: number;
    state: WithdrawalState;
    requested_at: number;
    ended_at: number | null;
  };
  /**
   * The account that a provider earns for: `provider:<its id>` while nobody has claimed it, one of `unclaimed_accounts` between two owners. `first_owner` took over what it had
   * earned before, and stands for `provider:<its id>` in old job rows.
   */
  provider_owners: { provider_id: string; account_id: string; first_owner: string | null; linked_at: number | null };
  /** Every price ever set, never changed. The one in force is the newest with `valid_from` not after now. */
  prices: {
    id: string;
    /** `*` stands for every model without a price of its own. */
    model: string;
    prompt_per_million: number;
    completion_per_million: number;
    per_image: number;
    valid_from: number;
    /** Order of setting, which decides between equal `valid_from`. */
    version: number;
  };

  /** Settled jobs per minute of the network. `minute` is milliseconds since 1970 divided by 60,000. Kept for two days. */
  minute_totals: { minute: number; requests: number; prompt_tokens: number; completion_tokens: number };
  /**
   * What each account used and served per hour (`hour`: milliseconds since 1970 divided by 3,600,000). Rows older than any
   * window are folded into the row of hour `-1`, so that the rows of an account always sum to its lifetime.
   */
  account_hours: { hour: number; account: string } & Activity;
  /**
   * The same, summed per window: the leaderboard reads `served_jobs > 0` rows of one window by `earned`, `served_tokens` or
   * `served_jobs` descending (each has an index). A row exists exactly while the account was active in the window.
   */
  account_totals: { window: StatsWindow; account: string } & Activity;
  /**
   * The network's totals per window: exactly four rows, from the first migration on. `all` is the network's lifetime.
   * `hour` is the newest hour the window includes; it includes that one and as many whole hours before it as its name says.
   */
  network_totals: { window: StatsWindow; hour: number; active_accounts: number } & Activity;

  /**
   * What each machine did per quarter of an hour and model, and for which account (`earner`, as in `jobs`). Quarters, because every
   * time zone is off by a whole number of them, so that owners get days of their own. Kept for a hundred days.
   */
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

  /**
   * Earnings of each account per UTC day, from which the part that has not matured is computed. Earnings that restore what the
   * account itself had spent have no row. Spending changes nothing here: matured earnings are spent before pending ones.
   */
  pending_earnings: { account: string /** Milliseconds since 1970 divided by 86,400,000. */; day: number; amount: number };
  /**
   * What each account earned from each other account per UTC day. Kept for a hundred days; older rows of unclaimed machines are
   * folded into day `-1`.
   */
  payer_earnings: {
    /** As in `jobs`, or who claimed the machine since. */
    earner: string;
    /** Id of the account that paid. Never the earner. */
    payer: string;
    day: number;
    earned: number;
    /** Part of `earned` that the payer took from deposited money. Returned to it as such if it claims the machine. */
    of_deposits: number;
  };

  /**
   * `…_pruned_before`: job rows that ended, and postings made, before `at` are gone or being removed. `earnings_pending_since`:
   * earnings up to `at` were there before maturity was introduced and count as matured.
   */
  ledger_marks: { name: 'jobs_pruned_before' | 'postings_pruned_before' | 'earnings_pending_since'; at: number };
  /** Coordinators that hold money for running jobs, and when they last said that they live. */
  ledger_holders: { id: string; seen_at: number };
}

/** What an account, or the network, did in some span of time. Counts are of settled jobs. */
export interface Activity {
  /** Jobs the account ordered, and what they used and cost. */
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  images: number;
  spent: number;
  /** Jobs its machines answered for pay, prompt and completion tokens of those, and what it earned with them. */
  served_jobs: number;
  served_tokens: number;
  earned: number;
}

/** `24h` includes at least the last 24 hours and less than 25; the others likewise. */
export type StatsWindow = '24h' | '7d' | '30d' | 'all';
export type JobState = 'reserved' | 'settled' | 'released';
export type DepositSource = 'stripe' | 'development' | 'admin';
export type WithdrawalState = 'requested' | 'paid' | 'rejected';

export interface JobRow {
  job_id: string;
  account_id: string;
  api_key_id: string;
  model: string;
  endpoint: string;
  state: JobState;
  /** The hold: the most the job can cost. Counts as held only while the state is `reserved`. */
  amount: number;
  /** The price agreed at reservation, copied, so that no later change touches it. */
  price_id: string;
  prompt_per_million: number;
  completion_per_million: number;
  per_image: number;
  /** Bounds of the job, which its settlement is clamped to. */
  max_prompt_tokens: number;
  max_completion_tokens: number;
  max_images: number;
  /** The coordinator that runs the job (`ledger_holders.id`). */
  holder: string;
  reserved_at: number;
  /** When it was settled or released. */
  ended_at: number | null;
  /** The rest is null or zero unless the job is settled. */
  provider_id: string | null;
  /** The account (in the sense of this file) that was credited; null when nobody was, as on one's own machine free of charge. */
  earner: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  /** Part of the completion tokens that think sections took. */
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
  /** Positive: the account has more. */
  amount: number;
  /** Part of the amount that is earnings, which may be withdrawn; never deposited money. */
  earned: number;
  at: number;
}

export interface BalanceRow {
  account: string;
  balance: number;
  /** Sum of the amounts of its jobs in state `reserved`. */
  reserved: number;
  /** Part of the balance that is earnings. Spending takes deposited money first. */
  earned: number;
}
