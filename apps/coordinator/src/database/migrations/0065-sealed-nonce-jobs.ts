/** Job that took a nonce, so that its repeated step is no replay. Null: taken by an earlier version. */
import type { Kysely, Migration } from 'kysely';

export const sealedNonceJobs: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('sealed_nonces').addColumn('job_id', 'text').execute();
  },
};
