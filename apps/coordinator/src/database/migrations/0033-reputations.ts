/** Creates the table of provider reputations, so that they survive restarts. */
import type { Kysely, Migration } from 'kysely';

export const reputations: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('provider_reputations')
      .addColumn('provider_id', 'text', (column) => column.primaryKey())
      .addColumn('weight', 'double precision', (column) => column.notNull())
      .addColumn('late', 'integer', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('restraint_kind', 'text')
      .addColumn('restraint_reason', 'text')
      .addColumn('restraint_detail', 'text')
      .addColumn('restraint_since', 'bigint')
      .addColumn('restraint_until', 'bigint')
      .addColumn('cooldowns', 'integer', (column) => column.notNull())
      .addColumn('quarantines', 'integer', (column) => column.notNull())
      .addColumn('cooldowns_at', 'bigint', (column) => column.notNull())
      .addColumn('quarantines_at', 'bigint', (column) => column.notNull())
      .execute();
  },
};
