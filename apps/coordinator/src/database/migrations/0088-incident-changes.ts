/** Time of the last edit of an incident or of one of its updates. */
import type { Kysely, Migration } from 'kysely';

export const incidentChanges: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('incidents').addColumn('changed_at', 'bigint').execute();
  },
};
