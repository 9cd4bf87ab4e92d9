/** Creates the log of members' actions in organisations, and adds the user who created an API key. */
import type { Kysely, Migration } from 'kysely';

export const organisationLog: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('organisation_events')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('organisation_id', 'text', (column) => column.notNull().references('organisations.account_id'))
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('actor_id', 'text', (column) => column.notNull())
      .addColumn('action', 'text', (column) => column.notNull())
      .addColumn('subject', 'text')
      .addColumn('role', 'text')
      .execute();
    await db.schema.createIndex('organisation_events_by_time').on('organisation_events').columns(['organisation_id', 'at', 'id']).execute();
    await db.schema.alterTable('api_keys').addColumn('created_by', 'text').execute();
    await db.schema.createIndex('api_keys_by_creator').on('api_keys').column('created_by').execute();
  },
};
