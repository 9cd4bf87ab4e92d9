/** Creates the tables of the model catalogue, with the allowed files of each model. */
import type { Kysely, Migration } from 'kysely';

export const catalogue: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('catalogue_models')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('display_name', 'text', (column) => column.notNull())
      .addColumn('quantization', 'text', (column) => column.notNull())
      .addColumn('model_type', 'text', (column) => column.notNull())
      .addColumn('min_memory_bytes', 'bigint')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('updated_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('catalogue_files')
      .addColumn('model_id', 'text', (column) => column.notNull().references('catalogue_models.id'))
      .addColumn('sha256', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('catalogue_files_key', ['model_id', 'sha256'])
      .execute();
  },
};
