/** Adds the column that marks credit leases whose unused part another coordinator needs. */
import type { Kysely, Migration } from 'kysely';

export const leaseRecalls: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('credit_leases')
      .addColumn('is_recalled', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
  },
};
