/** Builds the response bodies of two public statistics, `leaderboard` and `networkTotals`, from sums in the database. Pure. */
import type { Leaderboard, LeaderboardMetric, StatisticsWindow, Totals } from '@inference/formats';
import type { ActivitySums, LeaderTotals, ServedMetric } from '../../database/statistics-repository.js';

/** Sum by which each leaderboard is ordered. */
export const COLUMN_OF: Readonly<Record<LeaderboardMetric, ServedMetric>> = {
  earnings: 'earned',
  tokens: 'served_tokens',
  jobs: 'served_jobs',
};

/** `pseudonym`: name under which an account appears. */
export function leaderboard(
  choice: { readonly metric: LeaderboardMetric; readonly window: StatisticsWindow },
  leaders: readonly LeaderTotals[],
  pseudonym: (account: string) => string,
  now: number,
): Leaderboard {
  return {
    metric: choice.metric,
    window: choice.window,
    entries: leaders.map(({ account, earned, tokens, jobs }, index) => ({
      rank: index + 1,
      pseudonym: pseudonym(account),
      earnings_micro_usd: earned,
      tokens,
      jobs,
    })),
    updated_at: new Date(now).toISOString(),
  };
}

/** Counts all jobs, including those without earnings, such as jobs on an account's own providers. */
export function networkTotals(window: StatisticsWindow, sums: ActivitySums, now: number): Totals {
  return {
    window,
    earnings_micro_usd: sums.earned,
    tokens: sums.promptTokens + sums.completionTokens,
    jobs: sums.requests,
    active_accounts: sums.activeAccounts,
    updated_at: new Date(now).toISOString(),
  };
}
