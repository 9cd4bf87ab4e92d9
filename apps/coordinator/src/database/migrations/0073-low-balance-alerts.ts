/** Creates the table of balances below which accounts get an e-mail. */
import type { Kysely, Migration } from 'kysely';

export const lowBalanceAlerts: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('low_balance_alerts')
      .addColumn('account_id', 'text', (column) => column.primaryKey())
      .addColumn('threshold', 'bigint', (column) => column.notNull())
      .addColumn('is_armed', 'integer', (column) => column.notNull())
      .addColumn('mailed_at', 'bigint')
      .execute();
  },
};
