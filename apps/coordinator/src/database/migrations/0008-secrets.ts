/** Creates the table of random secrets that the coordinators of a database share. */
import type { Kysely, Migration } from 'kysely';

export const secrets: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('secrets')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('value', 'text', (column) => column.notNull())
      .execute();
  },
};
