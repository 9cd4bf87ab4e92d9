/** Creates the table of digests of handled webhook events, so that all coordinators together handle an event once. */
import type { Kysely, Migration } from 'kysely';

export const webhookDigests: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('webhook_digests')
      .addColumn('digest', 'text', (column) => column.primaryKey())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('webhook_digests_expires_at').on('webhook_digests').column('expires_at').execute();
  },
};
