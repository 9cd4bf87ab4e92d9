/** Creates the tables of deposit orders, the payment processor's events, ends of withdrawals, and payout accounts. */
import type { Kysely, Migration } from 'kysely';

export const payments: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('deposit_orders')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
      .addColumn('amount_micro_usd', 'bigint', (column) => column.notNull())
      .addColumn('source', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('checkout_id', 'text', (column) => column.unique())
      .addColumn('payment_id', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('ended_at', 'bigint')
      .addColumn('refunded_micro_usd', 'bigint', (column) => column.notNull().defaultTo(0))
      .addColumn('disputed_at', 'bigint')
      .execute();
    await db.schema.createIndex('deposit_orders_by_account').on('deposit_orders').columns(['account_id', 'created_at']).execute();
    await db.schema.createIndex('deposit_orders_by_payment').on('deposit_orders').column('payment_id').execute();
    await db.schema
      .createTable('payment_events')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('type', 'text', (column) => column.notNull())
      .addColumn('deposit_id', 'text')
      .addColumn('outcome', 'text', (column) => column.notNull())
      .addColumn('received_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('withdrawal_ends')
      .addColumn('withdrawal_id', 'text', (column) => column.primaryKey())
      .addColumn('end', 'text', (column) => column.notNull())
      .addColumn('transfer_id', 'text')
      .addColumn('claimed_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('payout_accounts')
      .addColumn('account_id', 'text', (column) => column.primaryKey().references('accounts.id'))
      .addColumn('payout_id', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .execute();
  },
};
