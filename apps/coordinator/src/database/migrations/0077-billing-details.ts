/** Name, address and tax ID that an account wants on the receipts of its deposits. */
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
