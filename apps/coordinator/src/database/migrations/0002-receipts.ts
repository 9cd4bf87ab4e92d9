/** Creates the table of job receipts, which are signed by enclave keys and stored for the paying account. */
import type { Kysely, Migration } from 'kysely';

export const receipts: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('receipts')
      .addColumn('job_id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
      .addColumn('receipt', 'text', (column) => column.notNull())
      .addColumn('receipt_signature', 'text', (column) => column.notNull())
      .addColumn('response_signature', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('receipts_by_time').on('receipts').column('created_at').execute();
  },
};
