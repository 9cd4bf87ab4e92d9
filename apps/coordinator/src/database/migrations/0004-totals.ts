/** Creates the roll-up tables for statistics: per minute, per account and hour, per account and window, and per window. */
import { type CreateTableBuilder, type Kysely, type Migration, sql } from 'kysely';

const ACTIVITY = ['requests', 'prompt_tokens', 'completion_tokens', 'images', 'spent', 'served_jobs', 'served_tokens', 'earned'] as const;

export const totals: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('minute_totals')
      .addColumn('minute', 'bigint', (column) => column.primaryKey())
      .addColumn('requests', 'bigint', (column) => column.notNull())
      .addColumn('prompt_tokens', 'bigint', (column) => column.notNull())
      .addColumn('completion_tokens', 'bigint', (column) => column.notNull())
      .execute();
    await withActivity(
      db.schema
        .createTable('account_hours')
        .addColumn('hour', 'bigint', (column) => column.notNull())
        .addColumn('account', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('account_hours_key', ['hour', 'account']),
    ).execute();
    await withActivity(
      db.schema
        .createTable('account_totals')
        .addColumn('window', 'text', (column) => column.notNull())
        .addColumn('account', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('account_totals_key', ['window', 'account']),
    ).execute();
    for (const metric of ['earned', 'served_tokens', 'served_jobs']) {
      await db.schema
        .createIndex(`account_totals_by_${metric}`)
        .on('account_totals')
        .columns(['window', `${metric} desc`, 'account'])
        // Not `> 0`: SQLite would use that as a range condition, and then sort the rows.
        .where(sql.ref('served_jobs'), '<>', sql.lit(0))
        .execute();
    }
    await withActivity(
      db.schema
        .createTable('network_totals')
        .addColumn('window', 'text', (column) => column.primaryKey())
        .addColumn('hour', 'bigint', (column) => column.notNull())
        .addColumn('active_accounts', 'bigint', (column) => column.notNull()),
    ).execute();
    const nothing = Object.fromEntries(ACTIVITY.map((name) => [name, 0]));
    const rows = ['24h', '7d', '30d', 'all'].map((window) => ({ window, hour: 0, active_accounts: 0, ...nothing }));
    await (db as Kysely<Record<string, Record<string, unknown>>>).insertInto('network_totals').values(rows).execute();
  },
};

function withActivity<Name extends string, Column extends string>(
  table: CreateTableBuilder<Name, Column>,
): CreateTableBuilder<Name, string> {
  let result: CreateTableBuilder<Name, string> = table;
  for (const name of ACTIVITY) result = result.addColumn(name, 'bigint', (column) => column.notNull());
  return result;
}
