/**
 * Reads the network's public statistics from roll-up tables (sums per minute or window), to which `foldJobs` first adds the newest jobs.
 */
import { sql } from 'kysely';
import { MINUTE_MS } from '../time-units.js';
import { foldJobs } from './ledger/fold-jobs.js';
import type { StatsWindow } from './tables/ledger.js';
import type { Database } from './tables.js';

export interface ActivitySums {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Micro-USD earned by providers. */
  readonly earned: number;
  readonly activeAccounts: number;
}

export async function readNetworkTotals(database: Database, window: StatsWindow): Promise<ActivitySums> {
  await foldJobs(database);
  const row = await database
    .selectFrom('network_totals')
    .select(['requests', 'prompt_tokens', 'completion_tokens', 'earned', 'active_accounts'])
    .where('window', '=', window)
    .executeTakeFirstOrThrow();
  return {
    requests: row.requests,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    earned: row.earned,
    activeAccounts: row.active_accounts,
  };
}

export interface MinuteSums {
  /** Start of the minute, in milliseconds since 1970. */
  readonly minute: number;
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** Sums per minute since `from` (milliseconds since 1970). Minutes without settled jobs are absent. */
export async function readMinutes(database: Database, from: number): Promise<readonly MinuteSums[]> {
  await foldJobs(database);
  const rows = await database
    .selectFrom('minute_totals')
    .select(['minute', 'requests', 'prompt_tokens', 'completion_tokens'])
    .where('minute', '>=', Math.floor(from / MINUTE_MS))
    .execute();
  return rows.map((row) => ({
    minute: row.minute * MINUTE_MS,
    requests: row.requests,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
  }));
}

export type ServedMetric = 'earned' | 'served_tokens' | 'served_jobs';

export interface LeaderTotals {
  readonly account: string;
  /** Micro-USD. */
  readonly earned: number;
  readonly tokens: number;
  readonly jobs: number;
}

/** Owners with the highest `metric` in a window, highest first. Equal ones are ordered by account id. */
export async function readLeaders(
  database: Database,
  window: StatsWindow,
  metric: ServedMetric,
  limit: number,
): Promise<readonly LeaderTotals[]> {
  await foldJobs(database);
  // A literal, not a parameter, so that the database can use the partial index.
  const none = sql.lit(0);
  return database
    .selectFrom('account_totals')
    .select(['account', 'earned', 'served_tokens as tokens', 'served_jobs as jobs'])
    .where('window', '=', window)
    .where('served_jobs', '<>', none)
    .orderBy(metric, 'desc')
    .orderBy('account')
    .limit(limit)
    .execute();
}
