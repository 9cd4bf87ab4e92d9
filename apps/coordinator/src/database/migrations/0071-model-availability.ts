/** Creates the table that counts, per model and day, the checks at which a provider served the model. An empty model counts all checks. */
import type { Kysely, Migration } from 'kysely';

export const modelAvailability: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('model_availability')
      .addColumn('model', 'text', (column) => column.notNull())
      .addColumn('day', 'bigint', (column) => column.notNull())
      .addColumn('checks', 'integer', (column) => column.notNull())
      .addColumn('missed', 'integer', (column) => column.notNull())
      .addPrimaryKeyConstraint('model_availability_key', ['model', 'day'])
      .execute();
    await db.schema.createIndex('model_availability_day').on('model_availability').column('day').execute();
  },
};
