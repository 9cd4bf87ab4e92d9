/** Creates better-auth's table of passkeys (WebAuthn credentials). */
import type { Kysely, Migration } from 'kysely';
import { dialectOf } from '../connection/dialect.js';

export const passkeys: Migration = {
  async up(db: Kysely<unknown>) {
    const isPostgres = dialectOf(db) === 'postgres';
    const date = isPostgres ? 'timestamptz' : 'date';
    await db.schema
      .createTable('auth_passkeys')
      .addColumn('id', 'text', (column) => column.notNull().primaryKey())
      .addColumn('name', 'text')
      .addColumn('public_key', 'text', (column) => column.notNull())
      .addColumn('user_id', 'text', (column) => column.notNull().references('auth_users.id').onDelete('cascade'))
      .addColumn('credential_id', 'text', (column) => column.notNull().unique())
      .addColumn('counter', 'bigint', (column) => column.notNull())
      .addColumn('device_type', 'text', (column) => column.notNull())
      .addColumn('backed_up', isPostgres ? 'boolean' : 'integer', (column) => column.notNull())
      .addColumn('transports', 'text')
      .addColumn('created_at', date)
      .addColumn('aaguid', 'text')
      .addColumn('last_used_at', date)
      .execute();
    await db.schema.createIndex('auth_passkeys_user_id_idx').on('auth_passkeys').column('user_id').execute();
  },
};
