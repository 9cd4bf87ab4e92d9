/** Content of each keyset epoch, fixed before it is logged: one epoch has one leaf in the transparency log. */
import type { Kysely, Migration } from 'kysely';

export const e2eKeysetClaims: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('e2e_keyset_claims')
      .addColumn('epoch', 'bigint', (column) => column.primaryKey())
      .addColumn('body', 'text', (column) => column.notNull())
      .addColumn('issued_at', 'bigint', (column) => column.notNull())
      .execute();
  },
};
