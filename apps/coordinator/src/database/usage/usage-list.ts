/** The settled jobs of an account as its owner sees them: newest first, with the key that asked and the machine that answered. */
import { sql } from 'kysely';
import type { Database } from '../tables.js';
import { keysOf } from './key-filter.js';
import { DAY_MS, type DayRange } from './usage-days.js';

export interface UsedJob {
  readonly jobId: string;
  /** Milliseconds. */
  readonly endedAt: number;
  readonly model: string;
  readonly endpoint: string;
  readonly keyId: string;
  /** Null: the key's row is gone. */
  readonly keyName: string | null;
  readonly providerId: string | null;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly images: number;
  /** Micro-USD. */
  readonly cost: number;
}

export interface UsedJobFilter {
  readonly accountId: string;
  readonly range: DayRange;
  readonly model: string | null;
  /** Id of a key, or `playground` for all that the playground made. */
  readonly key: string | null;
}

/** At most `limit` jobs of those after `after`. */
export async function listUsage(
  database: Database,
  filter: UsedJobFilter,
  page: { readonly limit: number; readonly after: { readonly at: number; readonly id: string } | null },
): Promise<UsedJob[]> {
  const { range, model, key } = filter;
  let query = selectJobs(database, filter.accountId)
    .where('ended_at', '>=', range.from * DAY_MS)
    .where('ended_at', '<', (range.to + 1) * DAY_MS);
  if (model !== null) query = query.where('jobs.model', '=', model);
  if (key !== null) query = query.where('api_key_id', 'in', keysOf(database, filter.accountId, key));
  const { after } = page;
  if (after !== null) {
    // The first condition is implied by the second, and is the one that the index can use.
    query = query
      .where('ended_at', '<=', after.at)
      .where((where) => where.or([where('ended_at', '<', after.at), where('job_id', '<', after.id)]));
  }
  const rows = await query.orderBy('ended_at', 'desc').orderBy('job_id', 'desc').limit(page.limit).execute();
  return rows.map(fromRow);
}

type UsageRow = Awaited<ReturnType<ReturnType<typeof selectJobs>['execute']>>[number];

function selectJobs(database: Database, accountId: string) {
  return (
    database
      .selectFrom('jobs')
      .leftJoin('api_keys', 'api_keys.id', 'jobs.api_key_id')
      .select(['job_id', 'ended_at', 'endpoint', 'api_key_id', 'provider_id', 'prompt_tokens', 'completion_tokens', 'images', 'cost'])
      .select(['jobs.model as model', 'api_keys.name as key_name'])
      .where('jobs.account_id', '=', accountId)
      // A literal, because that is what the index is limited to.
      .where('state', '=', sql.lit('settled'))
  );
}

function fromRow(row: UsageRow): UsedJob {
  return {
    jobId: row.job_id,
    // Settled jobs have ended.
    endedAt: row.ended_at as number,
    model: row.model,
    endpoint: row.endpoint,
    keyId: row.api_key_id,
    keyName: row.key_name,
    providerId: row.provider_id,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    images: row.images,
    cost: row.cost,
  };
}
