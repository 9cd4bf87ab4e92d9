/**
 * What a provider has earned, from the roll-ups alone: a handful of rows, however long the history. They are kept by account, so
 * a machine that was linked to an owner is told what all machines of that owner earned.
 */
import { isUnclaimed, unclaimedAccount } from '../ledger/unclaimed-accounts.js';
import type { Database } from '../tables.js';

export interface ProviderEarnings {
  readonly of: 'machine' | 'account';
  /** Since midnight UTC, and ever. Micro-USD. */
  readonly today: number;
  readonly total: number;
}

const HOUR_MS = 3_600_000;
const HOURS_OF_A_DAY = 24;

export async function readProviderEarnings(database: Database, providerId: string, now: number): Promise<ProviderEarnings> {
  const owner = await database.selectFrom('provider_owners').select('account_id').where('provider_id', '=', providerId).executeTakeFirst();
  const account = owner?.account_id ?? unclaimedAccount(providerId);
  const hour = Math.floor(now / HOUR_MS);
  const today = await database
    .selectFrom('account_hours')
    .select((select) => select.fn.sum<number | null>('earned').as('earned'))
    .where('hour', '>=', hour - (hour % HOURS_OF_A_DAY))
    .where('hour', '<=', hour)
    .where('account', '=', account)
    .executeTakeFirst();
  const total = await database
    .selectFrom('account_totals')
    .select('earned')
    .where('window', '=', 'all')
    .where('account', '=', account)
    .executeTakeFirst();
  return { of: isUnclaimed(account) ? 'machine' : 'account', today: today?.earned ?? 0, total: total?.earned ?? 0 };
}
