/** Columns that every roll-up counts, the time spans of roll-ups and statistics, and arithmetic on activity. */

import type { Activity, StatsWindow } from '../tables/ledger.js';

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

/** Length of a row's period in `machine_quarters`, in milliseconds. */
export const QUARTER_MS = 900_000;
export const RETAINED_QUARTERS = 100 * 24 * 4;
/** Days covered by `payer_earnings`. */
export const RETAINED_PAYER_DAYS = 100;
/** `day` of the row with folded old earnings of an unclaimed provider. */
export const FOLDED_DAY = -1;
/** Maximum maturity of earnings, in days. */
export const MAX_MATURITY_DAYS = 365;

export const PROVIDER_COUNTS = ['jobs', 'prompt_tokens', 'completion_tokens', 'images', 'earned'] as const;

/** Whole hours of a window before its newest hour; null: no limit. */
export const WINDOW_HOURS: Readonly<Record<StatsWindow, number | null>> = { '24h': 24, '7d': 168, '30d': 720, all: null };
export const WINDOWS = Object.keys(WINDOW_HOURS) as readonly StatsWindow[];

/** `hour` of the row with the folded old hours of an account. */
export const FOLDED_HOUR = -1;

export function noActivity(): Activity {
  return { requests: 0, prompt_tokens: 0, completion_tokens: 0, images: 0, spent: 0, served_jobs: 0, served_tokens: 0, earned: 0 };
}

/** Adds the second to the first. */
export function addActivity(sum: Activity, more: Readonly<Activity>): void {
  for (const name of ACTIVITY) sum[name] += more[name];
}
