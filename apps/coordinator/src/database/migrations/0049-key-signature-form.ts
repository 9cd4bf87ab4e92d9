/** Adds the form of response signatures in a key's streams: `event`, `comment`, or null for the default of the API format. */
import type { Kysely, Migration } from 'kysely';

export const keySignatureForm: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('api_keys').addColumn('signature_form', 'text').execute();
  },
};
