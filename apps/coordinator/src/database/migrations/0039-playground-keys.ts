/** Adds the column that marks keys of the console's playground, so that lists of API keys can hide them. */
import type { Kysely, Migration } from 'kysely';

export const playgroundKeys: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('api_keys').addColumn('made_for', 'text').execute();
  },
};
