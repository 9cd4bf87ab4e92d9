/** When a reputation was written: what one coordinator forgets must not be what another has just learnt. */
import type { Kysely, Migration } from 'kysely';

export const reputationsWrittenAt: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('provider_reputations')
      .addColumn('written_at', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
  },
};
