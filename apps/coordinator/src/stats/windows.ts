/**
 * The time windows of public statistics (spec: leaderboard, totals). Their sums are kept by the hour, UTC: a window includes
 * the running hour and as many whole hours before it as its name says, so `24h` covers at least the last 24 hours and less
 * than 25.
 */

export const METRICS = ['earnings', 'tokens', 'jobs'] as const;
export type Metric = (typeof METRICS)[number];

export const WINDOWS = ['24h', '7d', '30d', 'all'] as const;
export type Window = (typeof WINDOWS)[number];
