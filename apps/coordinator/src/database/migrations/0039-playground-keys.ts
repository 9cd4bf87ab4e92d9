/** Keys that the console's playground makes for itself: they are none that their owner made, named or needs to see. */
import type { Kysely, Migration } from 'kysely';

export const playgroundKeys: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('api_keys').addColumn('made_for', 'text').execute();
  },
};
