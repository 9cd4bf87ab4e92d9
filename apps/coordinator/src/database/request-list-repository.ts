/** `listSettledJobs` and `findSettledJob`: billed jobs of an account, for the console's list of requests. */
import { sql } from 'kysely';
import { DAY_MS } from '../time-units.js';
import type { Database } from './tables.js';
import { type DayRange, keysOf } from './usage-repository.js';

export interface SettledJob {
  readonly jobId: string;
  /** Time when the job's maximum cost was reserved, in milliseconds since 1970. */
  readonly reservedAt: number;
  /** Time of the settlement, in milliseconds since 1970. */
  readonly endedAt: number;
  readonly model: string;
  readonly endpoint: string;
  readonly keyId: string;
  /** Null: the API key no longer exists. */
  readonly keyName: string | null;
  readonly providerId: string | null;
  readonly promptTokens: number;
  /** Prompt tokens read from the KV cache; part of `promptTokens`. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Completion tokens without visible text, such as think segments; part of `completionTokens`. */
  readonly hiddenTokens: number;
  readonly images: number;
  /** Micro-USD. */
  readonly cost: number;
}

export interface RequestFilter {
  readonly accountId: string;
  readonly range: DayRange;
  /** Null: all models. */
  readonly model: string | null;
  /** A key id, or `playground` for all playground keys; null: all keys. */
  readonly key: string | null;
}

type RequestSort = keyof typeof SORT_COLUMNS;

interface RequestOrder {
  readonly sort: RequestSort;
  readonly order: 'asc' | 'desc';
}

/** Position in a sorted list: a job's value in the sort column, and its id. */
export interface SortPosition {
  readonly value: number | string;
  readonly id: string;
}

const SORT_COLUMNS = {
  time: sql<number>`ended_at`,
  model: sql<string>`jobs.model`,
  tokens: sql<number>`(prompt_tokens + completion_tokens)`,
  cost: sql<number>`cost`,
  latency: sql<number>`(ended_at - reserved_at)`,
} as const;

/** At most `limit` jobs after the position `after`. Jobs with equal values in the sort column are ordered by id. */
export async function listSettledJobs(
  database: Database,
  filter: RequestFilter,
  { sort, order }: RequestOrder,
  page: { readonly limit: number; readonly after: SortPosition | null },
): Promise<SettledJob[]> {
  const { range, model, key } = filter;
  const value = SORT_COLUMNS[sort];
  let query = selectJobs(database, filter.accountId)
    .where('ended_at', '>=', range.from * DAY_MS)
    .where('ended_at', '<', (range.to + 1) * DAY_MS);
  if (model !== null) query = query.where('jobs.model', '=', model);
  if (key !== null) query = query.where('api_key_id', 'in', keysOf(database, filter.accountId, key));
  const { after } = page;
  if (after !== null) {
    const beyond = sql.raw(order === 'desc' ? '<' : '>');
    // Both conditions together select the later positions. The first lets a sort by time use the index.
    query = query
      .where(sql<boolean>`${value} ${beyond}= ${after.value}`)
      .where(sql<boolean>`(${value} ${beyond} ${after.value} or job_id ${beyond} ${after.id})`);
  }
  const rows = await query.orderBy(value, order).orderBy('job_id', order).limit(page.limit).execute();
  return rows.map(fromRow);
}

/** The settled job with this id; null unless the job belongs to the account. */
export async function findSettledJob(database: Database, accountId: string, jobId: string): Promise<SettledJob | null> {
  const row = await selectJobs(database, accountId).where('job_id', '=', jobId).executeTakeFirst();
  return row === undefined ? null : fromRow(row);
}

/** Position of the last job of a page, for the next page. */
export function positionOf(job: SettledJob, sort: RequestSort): SortPosition {
  const value = {
    time: job.endedAt,
    model: job.model,
    tokens: job.promptTokens + job.completionTokens,
    cost: job.cost,
    latency: job.endedAt - job.reservedAt,
  }[sort];
  return { value, id: job.jobId };
}

type UsageRow = Awaited<ReturnType<ReturnType<typeof selectJobs>['execute']>>[number];

function selectJobs(database: Database, accountId: string) {
  return (
    database
      .selectFrom('jobs')
      .leftJoin('api_keys', 'api_keys.id', 'jobs.api_key_id')
      .select(['job_id', 'reserved_at', 'ended_at', 'endpoint', 'api_key_id', 'provider_id'])
      .select(['prompt_tokens', 'cached_tokens', 'completion_tokens', 'hidden_tokens', 'images', 'cost'])
      .select(['jobs.model as model', 'api_keys.name as key_name'])
      .where('jobs.account_id', '=', accountId)
      // The state is a literal, because a parameter would prevent the use of the partial index on settled jobs.
      .where('state', '=', sql.lit('settled'))
  );
}

function fromRow(row: UsageRow): SettledJob {
  return {
    jobId: row.job_id,
    reservedAt: row.reserved_at,
    // Settled jobs have ended.
    endedAt: row.ended_at as number,
    model: row.model,
    endpoint: row.endpoint,
    keyId: row.api_key_id,
    keyName: row.key_name,
    providerId: row.provider_id,
    promptTokens: row.prompt_tokens,
    cachedTokens: row.cached_tokens,
    completionTokens: row.completion_tokens,
    hiddenTokens: row.hidden_tokens,
    images: row.images,
    cost: row.cost,
  };
}
