/**
 * Adds budgets of API keys per day, week or month, and the spending of each key in its newest day, week and month.
 *
 * The spending in the current periods is computed from stored jobs.
 */
import { type Kysely, type Migration, sql } from 'kysely';

const DAY_MS = 86_400_000;

export const keyBudgets: Migration = {
  async up(db: Kysely<unknown>) {
    const amounts = ['budget_micro_usd', 'budget_set_at', 'budget_mailed_percent', 'budget_mailed_at'] as const;
    for (const column of amounts) await db.schema.alterTable('api_keys').addColumn(column, 'bigint').execute();
    await db.schema.alterTable('api_keys').addColumn('budget_period', 'text').execute();
    await db.schema
      .createIndex('api_keys_with_budget')
      .on('api_keys')
      .column('budget_period')
      .where(sql.ref('budget_micro_usd'), 'is not', null)
      .execute();
    for (const column of ['counted_day', 'day_spent', 'week_spent', 'month_spent'] as const) {
      await db.schema
        .alterTable('key_spend')
        .addColumn(column, 'bigint', (definition) => definition.notNull().defaultTo(0))
        .execute();
    }
    const now = new Date();
    const day = Math.floor(now.getTime() / DAY_MS);
    const dayStart = day * DAY_MS;
    const weekStart = (day - ((day + 3) % 7)) * DAY_MS;
    const monthStart = Date.UTC(now.getUTCFullYear(), now.getUTCMonth());
    const costSince = (start: number) => sql`sum(case when ended_at >= ${sql.lit(start)} then cost else 0 end)`;
    await sql`update key_spend
      set counted_day = ${sql.lit(day)}, day_spent = used.day_cost, week_spent = used.week_cost, month_spent = used.month_cost
      from (
        select api_key_id, ${costSince(dayStart)} as day_cost, ${costSince(weekStart)} as week_cost, ${costSince(monthStart)} as month_cost
        from jobs where state = 'settled' and ended_at >= ${sql.lit(Math.min(weekStart, monthStart))} group by api_key_id
      ) as used
      where used.api_key_id = key_spend.api_key_id`.execute(db);
  },
};
