/**
 * Creates the tables of the transparency log: append-only entries and subtree hashes, and one row with size and published tree.
 */
import type { Kysely, Migration } from 'kysely';

export const transparencyLog: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('log_heads')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('origin', 'text', (column) => column.notNull())
      .addColumn('size', 'bigint', (column) => column.notNull())
      .addColumn('published_size', 'bigint', (column) => column.notNull())
      .addColumn('published_root', 'text', (column) => column.notNull())
      .addColumn('cosignatures', 'text', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('log_entries')
      .addColumn('leaf_index', 'bigint', (column) => column.primaryKey())
      .addColumn('leaf_hash', 'text', (column) => column.notNull().unique())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('entry', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('log_entries_kind_created_at').on('log_entries').columns(['kind', 'created_at']).execute();
    await db.schema
      .createTable('log_nodes')
      .addColumn('level', 'integer', (column) => column.notNull())
      .addColumn('node_index', 'bigint', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('log_nodes_pk', ['level', 'node_index'])
      .execute();
  },
};
