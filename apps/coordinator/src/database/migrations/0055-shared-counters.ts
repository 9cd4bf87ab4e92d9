/** Creates the tables of attempt counters (sign-ins, mails), whose names are keyed hashes, and of the times of periodic work. */
import type { Kysely, Migration } from 'kysely';

export const sharedCounters: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('attempt_counts')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('count', 'integer', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('attempt_counts_expires_at').on('attempt_counts').column('expires_at').execute();
    await db.schema
      .createTable('periodic_runs')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('ran_at', 'bigint', (column) => column.notNull())
      .execute();
  },
};
