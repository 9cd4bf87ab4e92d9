/** Owners of compared machines, as hashes, and machines that chose themselves: neither alone halts a rollout. */
import type { Kysely, Migration } from 'kysely';

export const rolloutOwners: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('rollout_machines').addColumn('owner', 'text').execute();
    await db.schema.alterTable('rollout_machines').addColumn('is_volunteer', 'integer').execute();
  },
};
