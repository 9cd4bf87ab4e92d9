/** Creates the table of nonces of sealed requests, so that all coordinators together accept a request once. */
import type { Kysely, Migration } from 'kysely';

export const sealedNonces: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('sealed_nonces')
      .addColumn('digest', 'text', (column) => column.primaryKey())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('sealed_nonces_expires_at').on('sealed_nonces').column('expires_at').execute();
  },
};
