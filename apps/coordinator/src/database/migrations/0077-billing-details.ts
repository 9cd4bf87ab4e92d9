/** Creates the table of names, addresses and tax IDs that are printed on an account's deposit receipts. */
import type { Kysely, Migration } from 'kysely';

export const billingDetails: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('billing_details')
      .addColumn('account_id', 'text', (column) => column.primaryKey())
      .addColumn('name', 'text')
      .addColumn('address', 'text')
      .addColumn('tax_id', 'text')
      .execute();
  },
};
