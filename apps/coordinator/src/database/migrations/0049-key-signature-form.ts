/** How streams that are asked for with a key carry their signatures: `event`, `comment`, or null for the format's own way. */
import type { Kysely, Migration } from 'kysely';

export const keySignatureForm: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('api_keys').addColumn('signature_form', 'text').execute();
  },
};
