/** Creates the tables of device management (MDM): enrolments, commands, nonces and evidence. */
import { type Kysely, type Migration, sql } from 'kysely';

export const devices: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('device_enrolments')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('provider_id', 'text', (column) => column.notNull())
      .addColumn('se_key_sha256', 'text', (column) => column.notNull())
      .addColumn('se_public_key', 'text', (column) => column.notNull())
      .addColumn('serial_number', 'text', (column) => column.notNull())
      .addColumn('download_hash', 'text', (column) => column.unique())
      .addColumn('token_hash', 'text', (column) => column.notNull().unique())
      .addColumn('state', 'text', (column) => column.notNull().check(sql`state in ('offered', 'bound', 'active', 'ended')`))
      .addColumn('device_id', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('bound_at', 'bigint')
      .addColumn('ended_at', 'bigint')
      .addColumn('end_reason', 'text')
      .execute();
    await db.schema.createIndex('device_enrolments_by_key').on('device_enrolments').columns(['se_key_sha256', 'state']).execute();
    // Safeguard: a device is bound to one provider, even with concurrent check-ins.
    await db.schema
      .createIndex('device_enrolments_by_device')
      .unique()
      .on('device_enrolments')
      .column('device_id')
      .where(sql.ref('state'), 'in', [sql.lit('bound'), sql.lit('active')])
      .execute();
    await db.schema
      .createTable('device_commands')
      .addColumn('uuid', 'text', (column) => column.primaryKey())
      .addColumn('enrolment_id', 'text', (column) => column.notNull().references('device_enrolments.id'))
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('sent_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('ended_at', 'bigint')
      .addColumn('outcome', 'text')
      .execute();
    await db.schema
      .createIndex('device_commands_by_enrolment')
      .on('device_commands')
      .columns(['enrolment_id', 'kind', 'sent_at'])
      .execute();
    await db.schema
      .createTable('device_nonces')
      .addColumn('se_key_sha256', 'text', (column) => column.notNull())
      .addColumn('epoch', 'bigint', (column) => column.notNull())
      .addColumn('random', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('device_nonces_key', ['se_key_sha256', 'epoch'])
      .execute();
    await db.schema
      .createTable('device_evidence')
      .addColumn('se_key_sha256', 'text', (column) => column.notNull())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('enrolment_id', 'text', (column) => column.notNull().references('device_enrolments.id'))
      .addColumn('payload', 'text', (column) => column.notNull())
      .addColumn('received_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('device_evidence_key', ['se_key_sha256', 'kind'])
      .execute();
  },
};
