/** Form of the signatures in a key's streams: `event`, `comment`, or null for the format's default. */
import type { Kysely, Migration } from 'kysely';

export const keySignatureForm: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('api_keys').addColumn('signature_form', 'text').execute();
  },
};
