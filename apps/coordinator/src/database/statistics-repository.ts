/** Reads the roll-ups behind the public statistics. Each function touches a number of rows that does not grow with history. */
import { sql } from 'kysely';
import type { StatsWindow } from './tables/ledger.js';
import type { Database } from './tables.js';

export interface ActivitySums {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Micro-USD that providers earned. */
  readonly earned: number;
  readonly activeAccounts: number;
}

/** What the network did in a window. */
export async function readNetworkTotals(database: Database, window: StatsWindow): Promise<ActivitySums> {
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
  /** First millisecond of the minute. */
  readonly minute: number;
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The minutes from the one that begins at `from` on in which jobs were settled. */
export async function readMinutes(database: Database, from: number): Promise<readonly MinuteSums[]> {
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

const MINUTE_MS = 60_000;

export type ServedMetric = 'earned' | 'served_tokens' | 'served_jobs';

export interface Served {
  readonly account: string;
  /** Micro-USD. */
  readonly earned: number;
  readonly tokens: number;
  readonly jobs: number;
}

/** The accounts whose machines did most in a window, the first first; equal ones in the order of their ids. */
export async function readLeaders(
  database: Database,
  window: StatsWindow,
  metric: ServedMetric,
  limit: number,
): Promise<readonly Served[]> {
  // A literal, as the indexes are limited to rows like that.
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
