/**
 * Adds a hash of the owner of each compared machine, and a flag for machines whose owner chose the version.
 *
 * The machines of one owner alone, and such volunteers alone, must not halt a rollout.
 */
import type { Kysely, Migration } from 'kysely';

export const rolloutOwners: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('rollout_machines').addColumn('owner', 'text').execute();
    await db.schema.alterTable('rollout_machines').addColumn('is_volunteer', 'integer').execute();
  },
};
