/** Use and earnings of one account by day, from the settled jobs that are still kept. */
import { sql } from 'kysely';
import { unclaimedAccount } from '../ledger/unclaimed-accounts.js';
import type { Database } from '../tables.js';
import { keysOf } from './key-filter.js';

export const DAY_MS = 86_400_000;

/** Days since 1970 (UTC), both included. */
export interface DayRange {
  readonly from: number;
  readonly to: number;
}

export interface UsageDay {
  readonly day: number;
  readonly model: string;
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly images: number;
  readonly cost: number;
}

export interface EarningDay {
  readonly day: number;
  readonly providerId: string;
  readonly jobs: number;
  readonly tokens: number;
  readonly earned: number;
}

// Both databases divide integers to integers. The number is spelled out: as a parameter its type would be unknown.
const DAY = sql<number>`ended_at / ${sql.lit(DAY_MS)}`;

/** What the account spent, per day and model, oldest first; of one key where `key` says which, as in the usage list. */
export async function usageDays(
  database: Database,
  accountId: string,
  range: DayRange,
  only: { readonly model: string | null; readonly key: string | null } = { model: null, key: null },
): Promise<UsageDay[]> {
  const { model, key } = only;
  return database
    .selectFrom('jobs')
    .select([
      DAY.as('day'),
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
    .where('ended_at', '<', (range.to + 1) * DAY_MS)
    .groupBy([DAY, 'model'])
    .orderBy(DAY)
    .orderBy('model')
    .execute();
}

/** The names under which an account's earnings stand in job rows: its own, and those of machines that earned before it claimed them. */
export async function earnerNames(database: Database, accountId: string): Promise<string[]> {
  const first = await database.selectFrom('provider_owners').select('provider_id').where('first_owner', '=', accountId).execute();
  const later = await database.selectFrom('unclaimed_accounts').select('account').where('claimed_by', '=', accountId).execute();
  return [accountId, ...first.map((row) => unclaimedAccount(row.provider_id)), ...later.map((row) => row.account)];
}

/** What the account's machines earned, per day and machine, oldest first. */
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
