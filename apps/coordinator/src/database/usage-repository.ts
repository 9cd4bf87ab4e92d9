/**
 * Queries of an account's usage and earnings: sums per day or hour, and pages of single jobs.
 *
 * Reads the table `jobs`, from which old jobs are pruned.
 */
import { sql } from 'kysely';
import { DAY_MS, HOUR_MS } from '../time-units.js';
import { unclaimedAccount } from './ledger/unclaimed-accounts.js';
import type { Database } from './tables.js';

/** UTC days, in days since 1970. Both bounds are included. */
export interface DayRange {
  readonly from: number;
  readonly to: number;
}

export interface ModelUsage {
  readonly model: string;
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly images: number;
  /** Micro-USD. */
  readonly cost: number;
}

/** `day`: days since 1970 (UTC). */
export type UsageDay = ModelUsage & { readonly day: number };
/** `hour`: hours since 1970 (UTC). */
type UsageHour = ModelUsage & { readonly hour: number };

export interface EarningDay {
  readonly day: number;
  readonly providerId: string;
  readonly jobs: number;
  readonly tokens: number;
  readonly earned: number;
}

// Integer division on both databases. The divisor is a literal, because PostgreSQL does not know the type of a parameter.
const DAY = sql<number>`ended_at / ${sql.lit(DAY_MS)}`;
const HOUR = sql<number>`ended_at / ${sql.lit(HOUR_MS)}`;

interface UsageOfKeys {
  /** Null: all models. */
  readonly model: string | null;
  /** As in {@link keysOf}; null: all keys. */
  readonly key: string | null;
}

/** Usage of an account per day and model, oldest first. */
export async function usageDays(
  database: Database,
  accountId: string,
  range: DayRange,
  only: UsageOfKeys = { model: null, key: null },
): Promise<UsageDay[]> {
  return selectUsage(database, accountId, range, only)
    .select(DAY.as('day'))
    .groupBy([DAY, 'model'])
    .orderBy(DAY)
    .orderBy('model')
    .execute();
}

export async function usageHours(database: Database, accountId: string, range: DayRange, only: UsageOfKeys): Promise<UsageHour[]> {
  return selectUsage(database, accountId, range, only)
    .select(HOUR.as('hour'))
    .groupBy([HOUR, 'model'])
    .orderBy(HOUR)
    .orderBy('model')
    .execute();
}

function selectUsage(database: Database, accountId: string, range: DayRange, { model, key }: UsageOfKeys) {
  return database
    .selectFrom('jobs')
    .select([
      'model',
      sql<number>`count(*)`.as('requests'),
      sql<number>`sum(prompt_tokens)`.as('promptTokens'),
      sql<number>`sum(completion_tokens)`.as('completionTokens'),
      sql<number>`sum(images)`.as('images'),
      sql<number>`sum(cost)`.as('cost'),
    ])
    .where('state', '=', sql.lit('settled'))
    .where('account_id', '=', accountId)
    .$if(model !== null, (query) => query.where('model', '=', model as string))
    .$if(key !== null, (query) => query.where('api_key_id', 'in', keysOf(database, accountId, key as string)))
    .where('ended_at', '>=', range.from * DAY_MS)
    .where('ended_at', '<', (range.to + 1) * DAY_MS);
}

/** Values of the column `earner` for an account: its id, and the unclaimed accounts of its providers before they were linked. */
export async function earnerNames(database: Database, accountId: string): Promise<string[]> {
  const first = await database.selectFrom('provider_owners').select('provider_id').where('first_owner', '=', accountId).execute();
  const later = await database.selectFrom('unclaimed_accounts').select('account').where('claimed_by', '=', accountId).execute();
  return [accountId, ...first.map((row) => unclaimedAccount(row.provider_id)), ...later.map((row) => row.account)];
}

export async function earningDays(database: Database, accountId: string, range: DayRange): Promise<EarningDay[]> {
  const earners = await earnerNames(database, accountId);
  const rows = await database
    .selectFrom('jobs')
    .select([
      DAY.as('day'),
      'provider_id',
      sql<number>`count(*)`.as('jobs'),
      sql<number>`sum(prompt_tokens + completion_tokens)`.as('tokens'),
      sql<number>`sum(earned)`.as('earned'),
    ])
    .where('state', '=', sql.lit('settled'))
    .where('earner', 'in', earners)
    .where('ended_at', '>=', range.from * DAY_MS)
    .where('ended_at', '<', (range.to + 1) * DAY_MS)
    .groupBy([DAY, 'provider_id'])
    .orderBy(DAY)
    .orderBy('provider_id')
    .execute();
  return rows.map(({ provider_id, ...rest }) => ({ ...rest, providerId: provider_id ?? '' }));
}

export interface UsageEntryRow {
  readonly jobId: string;
  readonly model: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** 0 for jobs without images. */
  readonly images: number;
  /** Micro-USD. */
  readonly cost: number;
  /** Time of the settlement, in milliseconds since 1970. */
  readonly completedAt: number;
}

export interface UsageFilter {
  readonly accountId: string;
  /** Milliseconds since 1970, included. */
  readonly from?: number | undefined;
  /** Milliseconds since 1970, excluded. */
  readonly to?: number | undefined;
  readonly model?: string | undefined;
}

/** Position in a list of entries, newest first. Entries of equal time are ordered by descending job id. */
export interface UsagePosition {
  readonly completedAt: number;
  readonly jobId: string;
}

/** At most `limit` usage entries of an account after the position `after`, newest first. */
export async function readUsage(
  database: Database,
  filter: UsageFilter,
  page: { readonly after: UsagePosition | null; readonly limit: number },
): Promise<readonly UsageEntryRow[]> {
  const { accountId, from, to, model } = filter;
  const { after, limit } = page;
  const rows = await database
    .selectFrom('jobs')
    .select(['job_id', 'model', 'prompt_tokens', 'completion_tokens', 'images', 'cost', 'ended_at'])
    .where('account_id', '=', accountId)
    // The state is a literal, because a parameter would prevent the use of the partial index on settled jobs.
    .where('state', '=', sql.lit('settled'))
    .$if(from !== undefined, (query) => query.where('ended_at', '>=', from as number))
    .$if(to !== undefined, (query) => query.where('ended_at', '<', to as number))
    .$if(model !== undefined, (query) => query.where('model', '=', model as string))
    .$if(after !== null, (query) => {
      const { completedAt, jobId } = after as UsagePosition;
      // Both conditions together select the later positions. The first can use the index.
      return query
        .where('ended_at', '<=', completedAt)
        .where((all) => all.or([all('ended_at', '<', completedAt), all('job_id', '<', jobId)]));
    })
    .orderBy('ended_at', 'desc')
    .orderBy('job_id', 'desc')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    jobId: row.job_id,
    model: row.model,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    images: row.images,
    cost: row.cost,
    // Settled jobs have ended.
    completedAt: row.ended_at as number,
  }));
}

/** Query of the ids of an account's API keys. `key`: a key id, or `playground` for all playground keys. */
export function keysOf(database: Database, accountId: string, key: string) {
  const keys = database.selectFrom('api_keys').select('id').where('account_id', '=', accountId);
  return key === 'playground' ? keys.where('made_for', '=', 'playground') : keys.where('id', '=', key);
}

/** A limit, so that the query takes milliseconds with any history. */
const MAX_LATEST_JOBS = 2000;

/** Models of the newest {@link MAX_LATEST_JOBS} jobs that ended since `from` (milliseconds since 1970). */
export async function modelsOfLatestJobs(database: Database, from: number): Promise<readonly string[]> {
  const rows = await database
    .selectFrom((select) =>
      select
        .selectFrom('jobs')
        .select('model')
        .where('ended_at', '>=', from)
        .orderBy('ended_at', 'desc')
        .limit(MAX_LATEST_JOBS)
        .as('latest'),
    )
    .select('latest.model')
    .distinct()
    .execute();
  return rows.map(({ model }) => model);
}
