/** Creates the tables of rollouts of agent versions, the machines that they compare, and the capacity at each coordinator. */
import type { Kysely, Migration } from 'kysely';

export const rollouts: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('rollouts')
      .addColumn('version', 'text', (column) => column.primaryKey())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('stage', 'integer', (column) => column.notNull())
      .addColumn('started_at', 'bigint', (column) => column.notNull())
      .addColumn('stage_started_at', 'bigint', (column) => column.notNull())
      .addColumn('evidence_since', 'bigint', (column) => column.notNull())
      .addColumn('urgent_since', 'bigint')
      .addColumn('ended_at', 'bigint')
      .addColumn('reason', 'text')
      .addColumn('changed_by', 'text', (column) => column.notNull())
      .addColumn('findings', 'text')
      .addColumn('checked_at', 'bigint')
      .execute();
    await db.schema
      .createTable('rollout_machines')
      .addColumn('version', 'text', (column) => column.notNull())
      .addColumn('provider_id', 'text', (column) => column.notNull())
      .addColumn('part', 'text', (column) => column.notNull())
      .addColumn('chip_family', 'text', (column) => column.notNull())
      .addColumn('models', 'text', (column) => column.notNull())
      .addColumn('slots', 'integer', (column) => column.notNull())
      .addColumn('since', 'bigint', (column) => column.notNull())
      .addColumn('seen_at', 'bigint', (column) => column.notNull())
      .addColumn('on_version_at', 'bigint')
      .addColumn('failed_at', 'bigint')
      .addColumn('blocked_at', 'bigint')
      .addColumn('restricted_at', 'bigint')
      .addColumn('trust_before', 'integer')
      .addColumn('trust', 'integer')
      .addColumn('attempts', 'integer', (column) => column.notNull())
      .addColumn('failures', 'integer', (column) => column.notNull())
      .addColumn('speed_model', 'text')
      .addColumn('speed_before', 'double precision')
      .addColumn('speed_ratio', 'double precision')
      .addPrimaryKeyConstraint('rollout_machines_key', ['version', 'provider_id', 'part'])
      .execute();
    await db.schema
      .createTable('rollout_fleets')
      .addColumn('coordinator', 'text', (column) => column.primaryKey())
      .addColumn('seen_at', 'bigint', (column) => column.notNull())
      .addColumn('fleet', 'text', (column) => column.notNull())
      .execute();
  },
};
