/** Columns, periods and retention times of the roll-up tables, which hold usage and earnings summed per minute, hour, day or window. */

import type { Activity, StatsWindow } from '../tables/ledger.js';

/** Columns that the sums of accounts and of the network have in common. */
export const ACTIVITY = [
  'requests',
  'prompt_tokens',
  'completion_tokens',
  'images',
  'spent',
  'served_jobs',
  'served_tokens',
  'earned',
] as const satisfies readonly (keyof Activity)[];

/** A quarter of an hour, the period of a row in `machine_quarters`. */
export const QUARTER_MS = 900_000;
/** Quarters whose rows `machine_quarters` retains: 100 days. */
export const RETAINED_QUARTERS = 100 * 24 * 4;
/** Days whose rows `payer_earnings` retains. */
export const RETAINED_PAYER_DAYS = 100;
/** Value of `day` in the row that sums older earnings of an unclaimed provider. */
export const FOLDED_DAY = -1;
/** Maximum number of days until earnings can be withdrawn. */
export const MAX_MATURITY_DAYS = 365;

/** Columns of sums in `machine_quarters`. */
export const PROVIDER_COUNTS = ['jobs', 'prompt_tokens', 'completion_tokens', 'images', 'earned'] as const;

/** Hours of a statistics window in addition to its newest, running hour; null: no limit. */
export const WINDOW_HOURS: Readonly<Record<StatsWindow, number | null>> = { '24h': 24, '7d': 168, '30d': 720, all: null };
export const WINDOWS = Object.keys(WINDOW_HOURS) as readonly StatsWindow[];

/** Value of `hour` in the row that sums older hours of an account. */
export const FOLDED_HOUR = -1;

export function noActivity(): Activity {
  return { requests: 0, prompt_tokens: 0, completion_tokens: 0, images: 0, spent: 0, served_jobs: 0, served_tokens: 0, earned: 0 };
}

export function addActivity(sum: Activity, more: Readonly<Activity>): void {
  for (const name of ACTIVITY) sum[name] += more[name];
}
