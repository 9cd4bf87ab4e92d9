/**
 * Schemas of the public statistics: query parameters and responses.
 *
 * Each parameter's description completes the error message "<name> must be ...".
 */
import Type, { type Static } from 'typebox';

export const LEADERBOARD_METRICS = ['earnings', 'tokens', 'jobs'] as const;
export type LeaderboardMetric = (typeof LEADERBOARD_METRICS)[number];

/** Sums are stored per UTC hour and include the current hour, so `24h` covers 24 to 25 hours. */
export const STATISTICS_WINDOWS = ['24h', '7d', '30d', 'all'] as const;
export type StatisticsWindow = (typeof STATISTICS_WINDOWS)[number];

const count = Type.Integer({ minimum: 0 });
const texts = <Names extends readonly string[]>(...names: Names) =>
  Object.fromEntries(names.map((name) => [name, Type.String()])) as { [Name in Names[number]]: ReturnType<typeof Type.String> };
const time = Type.String({ description: 'When this was computed, ISO 8601, UTC.' });

const metric = Type.Enum([...LEADERBOARD_METRICS], { default: 'earnings', description: 'one of earnings, tokens, jobs' });
const window = Type.Enum([...STATISTICS_WINDOWS], { default: 'all', description: 'one of 24h, 7d, 30d, all' });

export const LeaderboardQuerySchema = Type.Object({
  metric,
  window,
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50, description: 'a whole number from 1 to 200' }),
});

export const TotalsQuerySchema = Type.Object({ window });

const ProviderSnapshot = Type.Object({
  ...texts('id', 'chip', 'chip_family', 'status'),
  memory_gb: count,
  gpu_cores: count,
  trust_level: Type.Union([Type.Literal('self_signed'), Type.Literal('hardware')]),
  decode_tps: Type.Number({ minimum: 0 }),
  requests_served: count,
  tokens_generated: count,
  models: Type.Array(Type.String()),
  current_model: Type.String({ description: 'Model of the newest request; empty while the provider serves none.' }),
});
export type ProviderSnapshot = Static<typeof ProviderSnapshot>;

const MinuteBucket = Type.Object({
  timestamp: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:00Z$', description: 'The minute, ISO 8601, UTC.' }),
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
});

const Stats = Type.Object({
  total_requests: count,
  total_prompt_tokens: count,
  total_completion_tokens: count,
  total_tokens: count,
  avg_tokens_per_request: Type.Number({ minimum: 0 }),
  active_providers: count,
  total_gpu_cores: count,
  total_cpu_cores: count,
  total_memory_gb: count,
  total_bandwidth_gbs: Type.Number({ minimum: 0 }),
  providers: Type.Array(ProviderSnapshot),
  models: Type.Array(Type.Object({ id: Type.String(), providers: count })),
  time_series: Type.Array(MinuteBucket, { minItems: 30, maxItems: 30, description: 'The last 30 minutes, the oldest first.' }),
});
export type Stats = Static<typeof Stats>;

const LeaderboardEntry = Type.Object({
  rank: Type.Integer({ minimum: 1 }),
  pseudonym: Type.String(),
  earnings_micro_usd: count,
  tokens: count,
  jobs: count,
});

const Leaderboard = Type.Object({
  metric: Type.Enum([...LEADERBOARD_METRICS]),
  window: Type.Enum([...STATISTICS_WINDOWS]),
  entries: Type.Array(LeaderboardEntry, { maxItems: 200 }),
  updated_at: time,
});

export type Leaderboard = Static<typeof Leaderboard>;

const Totals = Type.Object({
  window: Type.Enum([...STATISTICS_WINDOWS]),
  earnings_micro_usd: count,
  tokens: count,
  jobs: count,
  active_accounts: count,
  updated_at: time,
});
export type Totals = Static<typeof Totals>;

export const STATS_SCHEMAS = { Stats, Leaderboard, Totals };
