/** Creates the table of credit leases: parts of balances from which coordinators reserve in memory. `balances.reserved` includes them. */
import { type Kysely, type Migration, sql } from 'kysely';

export const creditLeases: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('credit_leases')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('account', 'text', (column) => column.notNull())
      .addColumn('holder', 'text', (column) => column.notNull())
      .addColumn('amount', 'bigint', (column) => column.notNull().check(sql`amount >= 0`))
      .addColumn('in_use', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('credit_leases_by_account').on('credit_leases').column('account').execute();
  },
};
