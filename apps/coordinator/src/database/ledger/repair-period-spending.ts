/**
 * `repairPeriodSpending`: raises the day, week and month sums of `key_spend` that are less than the settled jobs.
 *
 * Coordinators of an earlier version, which may run during an upgrade, maintain only the total.
 */
import { sql } from 'kysely';
import { DAY_MS } from '../../time-units.js';
import type { BudgetPeriod, Database } from '../tables.js';
import { BUDGET_PERIODS, dayOf, PERIOD_COLUMNS, periodStart } from './key-budget.js';

/** Never lowers a sum. Resolves to the number of keys with too low sums. `now`: milliseconds since 1970. */
export async function repairPeriodSpending(database: Database, now: number): Promise<number> {
  const day = dayOf(now);
  const startOf = (period: BudgetPeriod): number => periodStart(period, day);
  const firstDay = Math.min(...BUDGET_PERIODS.map(startOf));
  const cost = (period: BudgetPeriod) =>
    sql`sum(case when ended_at >= ${sql.lit(startOf(period) * DAY_MS)} then cost else 0 end) as ${sql.ref(`${period}_cost`)}`;
  const used = (keyId: string | null) =>
    sql`(select api_key_id, ${sql.join(BUDGET_PERIODS.map(cost))} from jobs
      where state = 'settled' and ended_at >= ${sql.lit(firstDay * DAY_MS)} ${keyId === null ? sql`` : sql`and api_key_id = ${keyId}`}
      group by api_key_id) as used`;
  const usedIn = (period: BudgetPeriod) => sql.ref(`used.${period}_cost`);
  const current = (period: BudgetPeriod) =>
    sql`(case when key_spend.counted_day >= ${sql.lit(startOf(period))} then ${sql.ref(`key_spend.${PERIOD_COLUMNS[period]}`)} else 0 end)`;
  const isLow = sql.join(
    BUDGET_PERIODS.map((period) => sql`${usedIn(period)} > ${current(period)}`),
    sql` or `,
  );
  const low = await sql<{ api_key_id: string }>`select key_spend.api_key_id from key_spend
    join ${used(null)} on used.api_key_id = key_spend.api_key_id where ${isLow}`.execute(database);
  const raised = BUDGET_PERIODS.map(
    (period) =>
      sql`${sql.ref(PERIOD_COLUMNS[period])} = case when ${usedIn(period)} > ${current(period)} then ${usedIn(period)} else ${current(period)} end`,
  );
  // One row per statement, because locking several rows could deadlock with settlements.
  for (const { api_key_id: keyId } of low.rows) {
    await sql`update key_spend set ${sql.join(raised)},
        counted_day = case when counted_day < ${sql.lit(day)} then ${sql.lit(day)} else counted_day end
      from ${used(keyId)} where used.api_key_id = key_spend.api_key_id and (${isLow})`.execute(database);
  }
  return low.rows.length;
}
