/** Creates the table with the operators' policy for rollouts of agent versions: one row with JSON. */
import type { Kysely, Migration } from 'kysely';

export const rolloutPolicy: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('rollout_policies')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('policy', 'text', (column) => column.notNull())
      .addColumn('changed_at', 'bigint', (column) => column.notNull())
      .addColumn('changed_by', 'text', (column) => column.notNull())
      .execute();
  },
};
