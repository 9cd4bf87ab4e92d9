/** Creates the table of published keysets of the end-to-end mode. */
import type { Kysely, Migration } from 'kysely';

export const e2eKeysets: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('e2e_keysets')
      .addColumn('epoch', 'bigint', (column) => column.primaryKey())
      .addColumn('body', 'text', (column) => column.notNull())
      .addColumn('issued_at', 'bigint', (column) => column.notNull())
      .execute();
  },
};
