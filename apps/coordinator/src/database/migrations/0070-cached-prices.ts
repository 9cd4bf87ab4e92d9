/** Adds the rate of cached prompt tokens to prices and jobs. Null: the rate of other prompt tokens. */
import type { Kysely, Migration } from 'kysely';

export const cachedPrices: Migration = {
  async up(db: Kysely<unknown>) {
    for (const table of ['prices', 'jobs']) await db.schema.alterTable(table).addColumn('cached_per_million', 'bigint').execute();
  },
};
