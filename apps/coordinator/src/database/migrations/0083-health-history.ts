/** Creates the table of coordinators' health figures over time (counts and durations), for the operators' health page. */
import type { Kysely, Migration } from 'kysely';

export const healthHistory: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('health_history')
      .addColumn('coordinator', 'text', (column) => column.notNull())
      .addColumn('slot_seconds', 'integer', (column) => column.notNull())
      .addColumn('slot_at', 'bigint', (column) => column.notNull())
      .addColumn('figures', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('health_history_key', ['slot_seconds', 'slot_at', 'coordinator'])
      .execute();
  },
};
