/** `PublicStatistics` computes and caches the statistics that anyone may read: network, leaderboards and totals. */
import {
  LEADERBOARD_METRICS,
  type Leaderboard,
  type LeaderboardMetric,
  STATISTICS_WINDOWS,
  type StatisticsWindow,
  type Stats,
  type Totals,
} from '@inference/formats';
import Type from 'typebox';
import { LOCAL_VIEWS, type NetworkViews } from '../../cluster/views.js';
import { sharedSecret } from '../../database/secret-repository.js';
import {
  type ActivitySums,
  type LeaderTotals,
  readLeaders,
  readMinutes,
  readNetworkTotals,
  type ServedMetric,
} from '../../database/statistics-repository.js';
import type { Database } from '../../database/tables.js';
import { networkStats, type RegistryView, StatisticsPartSchema, seriesStart, statisticsPart } from './network-statistics.js';
import { pseudonyms } from './pseudonym.js';
import { type Cached, TimedCache } from './timed-cache.js';

export const MAX_AGE_SECONDS = { stats: 60, leaderboard: 300, totals: 60 } as const;
/** Name of the secret in the database. All coordinators share it, so that an account has one pseudonym. */
export const LEADERBOARD_SECRET = 'leaderboard';
/** Length of the cached leaderboard. Each response contains a part of it. */
const MAX_LEADERS = 200;

interface PublicStatisticsOptions {
  readonly database: Database;
  readonly registry: RegistryView;
  /** Statistics of other coordinators. Default: there are none. */
  readonly views?: NetworkViews;
  readonly now: () => number;
}

export class PublicStatistics {
  readonly #stats: TimedCache<Stats>;
  readonly #leaderboards: ReadonlyMap<string, TimedCache<Leaderboard>>;
  readonly #totals: ReadonlyMap<StatisticsWindow, TimedCache<Totals>>;
  #pseudonym: ((accountId: string) => string) | null = null;

  constructor(options: PublicStatisticsOptions) {
    const { database, registry, views = LOCAL_VIEWS, now } = options;
    const readParts = views.define('statistics', { query: Type.Null(), part: StatisticsPartSchema }, () => statisticsPart(registry));
    const cacheOf = <T>(seconds: number, make: (now: number) => Promise<T>) => new TimedCache({ maxAgeMs: seconds * 1000, now, make });
    this.#stats = cacheOf(MAX_AGE_SECONDS.stats, async (time) => {
      const lifetime = await readNetworkTotals(database, 'all');
      const minutes = await readMinutes(database, seriesStart(time));
      return networkStats(await readParts(null), lifetime, minutes, time);
    });
    const choices = LEADERBOARD_METRICS.flatMap((metric) => STATISTICS_WINDOWS.map((window) => ({ metric, window })));
    this.#leaderboards = new Map(
      choices.map((choice) => [
        keyOf(choice),
        cacheOf(MAX_AGE_SECONDS.leaderboard, async (time) => {
          const leaders = await readLeaders(database, choice.window, COLUMN_OF[choice.metric], MAX_LEADERS);
          this.#pseudonym ??= pseudonyms(await sharedSecret(database, LEADERBOARD_SECRET));
          return leaderboard(choice, leaders, this.#pseudonym, time);
        }),
      ]),
    );
    this.#totals = new Map(
      STATISTICS_WINDOWS.map((window) => [
        window,
        cacheOf(MAX_AGE_SECONDS.totals, async (time) => networkTotals(window, await readNetworkTotals(database, window), time)),
      ]),
    );
  }

  stats(): Promise<Cached<Stats>> {
    return this.#stats.get();
  }

  async leaderboard(choice: {
    readonly metric: LeaderboardMetric;
    readonly window: StatisticsWindow;
    readonly limit: number;
  }): Promise<Cached<Leaderboard>> {
    const { value, ageSeconds } = await requireCache(this.#leaderboards.get(keyOf(choice))).get();
    return { value: { ...value, entries: value.entries.slice(0, choice.limit) }, ageSeconds };
  }

  totals(window: StatisticsWindow): Promise<Cached<Totals>> {
    return requireCache(this.#totals.get(window)).get();
  }
}

function keyOf({ metric, window }: { readonly metric: LeaderboardMetric; readonly window: StatisticsWindow }): string {
  return `${metric} ${window}`;
}

function requireCache<T>(cache: TimedCache<T> | undefined): TimedCache<T> {
  if (cache === undefined) throw new Error('no such statistics');
  return cache;
}

/** Stored sum by which each leaderboard is ordered. */
const COLUMN_OF: Readonly<Record<LeaderboardMetric, ServedMetric>> = { earnings: 'earned', tokens: 'served_tokens', jobs: 'served_jobs' };

function leaderboard(
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
function networkTotals(window: StatisticsWindow, sums: ActivitySums, now: number): Totals {
  return {
    window,
    earnings_micro_usd: sums.earned,
    tokens: sums.promptTokens + sums.completionTokens,
    jobs: sums.requests,
    active_accounts: sums.activeAccounts,
    updated_at: new Date(now).toISOString(),
  };
}
