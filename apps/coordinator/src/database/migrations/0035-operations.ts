/** Creates the tables of provider names, last known states, quarantines, and the operators' audit log. */
import type { Kysely, Migration } from 'kysely';

export const operations: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('machine_names')
      .addColumn('provider_id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('machines_last_seen')
      .addColumn('provider_id', 'text', (column) => column.primaryKey())
      .addColumn('seen_at', 'bigint', (column) => column.notNull())
      .addColumn('facts', 'text', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('provider_holds')
      .addColumn('provider_id', 'text', (column) => column.primaryKey())
      .addColumn('reason', 'text', (column) => column.notNull())
      .addColumn('since', 'bigint', (column) => column.notNull())
      .addColumn('held_by', 'text', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('operator_actions')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('operator', 'text', (column) => column.notNull())
      .addColumn('action', 'text', (column) => column.notNull())
      .addColumn('subject', 'text')
      .addColumn('details', 'text')
      .addColumn('outcome', 'text')
      .execute();
    await db.schema.createIndex('operator_actions_by_time').on('operator_actions').columns(['at', 'id']).execute();
    await db.schema.createIndex('operator_actions_by_subject').on('operator_actions').columns(['subject', 'at', 'id']).execute();
  },
};
