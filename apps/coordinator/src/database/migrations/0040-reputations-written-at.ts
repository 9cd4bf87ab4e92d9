/** Adds the write time of a reputation, so that no coordinator deletes a row that another has just written. */
import type { Kysely, Migration } from 'kysely';

export const reputationsWrittenAt: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('provider_reputations')
      .addColumn('written_at', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
  },
};
