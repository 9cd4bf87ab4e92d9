/** Adds the job that used a nonce, so that a retried ledger step is not refused as a replay. Null: stored by an earlier version. */
import type { Kysely, Migration } from 'kysely';

export const sealedNonceJobs: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('sealed_nonces').addColumn('job_id', 'text').execute();
  },
};
