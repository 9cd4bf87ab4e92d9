/** Marks keys that the console's playground creates for itself, so owners do not see them. */
import type { Kysely, Migration } from 'kysely';

export const playgroundKeys: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('api_keys').addColumn('made_for', 'text').execute();
  },
};
