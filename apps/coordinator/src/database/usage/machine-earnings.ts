/** What one machine earned for one account, from the roll-up of quarters alone: never from the jobs, however many there were. */
import { sql } from 'kysely';
import { MACHINE_COUNTS, QUARTER_MS } from '../ledger/activity.js';
import type { Database, Tables } from '../tables.js';
import { earnerNames } from './usage-days.js';

export type MachineQuarter = Omit<Tables['machine_quarters'], 'provider_id' | 'earner'>;

/** Quarters that begin from `from` on (milliseconds since 1970), the oldest first; one row per quarter and model. */
export async function machineQuarters(
  database: Database,
  { providerId, accountId, from }: { readonly providerId: string; readonly accountId: string; readonly from: number },
): Promise<MachineQuarter[]> {
  return database
    .selectFrom('machine_quarters')
    .select(['quarter', 'model', ...MACHINE_COUNTS.map((name) => sql<number>`sum(${sql.ref(name)})`.as(name))])
    .where('provider_id', '=', providerId)
    .where('earner', 'in', await earnerNames(database, accountId))
    .where('quarter', '>=', Math.floor(from / QUARTER_MS))
    .groupBy(['quarter', 'model'])
    .orderBy('quarter')
    .orderBy('model')
    .execute();
}

/** What all machines of an account have earned for it, ever, and how many there are now. */
export async function accountEarnings(
  database: Database,
  accountId: string,
): Promise<{ readonly machines: number; readonly total: number }> {
  const total = await database
    .selectFrom('account_totals')
    .select('earned')
    .where('window', '=', 'all')
    .where('account', '=', accountId)
    .executeTakeFirst();
  const machines = await database
    .selectFrom('provider_owners')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return { machines: machines?.count ?? 0, total: total?.earned ?? 0 };
}
