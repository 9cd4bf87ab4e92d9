/** Creates the tables of the status page: minutes per day in which each component ran, and incidents with their updates. */
import type { Kysely, Migration } from 'kysely';

export const statusPage: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('component_availability')
      .addColumn('component', 'text', (column) => column.notNull())
      .addColumn('day', 'bigint', (column) => column.notNull())
      .addColumn('minutes', 'integer', (column) => column.notNull())
      .addColumn('first_minute', 'bigint', (column) => column.notNull())
      .addColumn('last_minute', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('component_availability_key', ['component', 'day'])
      .execute();
    await db.schema
      .createTable('incidents')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('title', 'text', (column) => column.notNull())
      .addColumn('impact', 'text', (column) => column.notNull())
      .addColumn('components', 'text', (column) => column.notNull())
      .addColumn('models', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('starts_at', 'bigint')
      .addColumn('ends_at', 'bigint')
      .addColumn('resolved_at', 'bigint')
      .execute();
    await db.schema.createIndex('incidents_created').on('incidents').columns(['created_at', 'id']).execute();
    await db.schema
      .createTable('incident_updates')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('incident_id', 'text', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('status', 'text', (column) => column.notNull())
      .addColumn('message', 'text', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('incident_updates_incident').on('incident_updates').columns(['incident_id', 'at']).execute();
  },
};
