/** Reads the usage entries of an account, which are its settled jobs: newest first, in pages that stay put while new ones come. */
import { sql } from 'kysely';
import type { Database } from '../tables.js';

export interface UsageEntryRow {
  readonly jobId: string;
  readonly model: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** 0 for jobs that make none. */
  readonly images: number;
  /** Micro-USD. */
  readonly cost: number;
  /** Milliseconds. */
  readonly completedAt: number;
}

export interface UsageFilter {
  readonly accountId: string;
  /** Milliseconds; the first that counts, and the first that does not any more. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly model?: string | undefined;
}

/** The place of an entry in the order; of equal times the greater job id comes first. */
export interface UsagePosition {
  readonly completedAt: number;
  readonly jobId: string;
}

/** At most `limit` entries, those after `after` where it is given. */
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
    // A literal, because that is what the index is limited to.
    .where('state', '=', sql.lit('settled'))
    .$if(from !== undefined, (query) => query.where('ended_at', '>=', from as number))
    .$if(to !== undefined, (query) => query.where('ended_at', '<', to as number))
    .$if(model !== undefined, (query) => query.where('model', '=', model as string))
    .$if(after !== null, (query) => {
      const { completedAt, jobId } = after as UsagePosition;
      // The first condition is implied by the second, and is the one that an index can use.
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
