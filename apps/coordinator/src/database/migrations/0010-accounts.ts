/** For sign-up: adds flags of accounts and limits of API keys, and creates the tables of link codes and of better-auth. */
import type { Kysely, Migration } from 'kysely';
import { dialectOf } from '../connection/dialect.js';

export const accounts: Migration = {
  async up(db: Kysely<unknown>) {
    for (const flag of ['admin_since', 'suspended_at', 'deleted_at']) {
      await db.schema.alterTable('accounts').addColumn(flag, 'bigint').execute();
    }
    await db.schema
      .alterTable('api_keys')
      .addColumn('name', 'text', (column) => column.notNull().defaultTo(''))
      .execute();
    for (const limit of ['expires_at', 'spend_limit_micro_usd'] as const) {
      await db.schema.alterTable('api_keys').addColumn(limit, 'bigint').execute();
    }
    await db.schema.alterTable('api_keys').addColumn('models', 'text').execute();
    await createAuthTables(db);
    await db.schema
      .createTable('machine_codes')
      .addColumn('hash', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('used_at', 'bigint')
      .execute();
  },
};

async function createAuthTables(db: Kysely<unknown>): Promise<void> {
  const isPostgres = dialectOf(db) === 'postgres';
  const date = isPostgres ? 'timestamptz' : 'date';
  const flag = isPostgres ? 'boolean' : 'integer';
  await db.schema
    .createTable('auth_users')
    .addColumn('id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('email', 'text', (column) => column.notNull().unique())
    .addColumn('email_verified', flag, (column) => column.notNull())
    .addColumn('image', 'text')
    .addColumn('created_at', date, (column) => column.notNull())
    .addColumn('updated_at', date, (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('auth_sessions')
    .addColumn('id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('expires_at', date, (column) => column.notNull())
    .addColumn('token', 'text', (column) => column.notNull().unique())
    .addColumn('created_at', date, (column) => column.notNull())
    .addColumn('updated_at', date, (column) => column.notNull())
    .addColumn('ip_address', 'text')
    .addColumn('user_agent', 'text')
    .addColumn('user_id', 'text', (column) => column.notNull().references('auth_users.id').onDelete('cascade'))
    .execute();
  await db.schema.createIndex('auth_sessions_user_id_idx').on('auth_sessions').column('user_id').execute();
  await db.schema
    .createTable('auth_credentials')
    .addColumn('id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('provider_id', 'text', (column) => column.notNull())
    .addColumn('user_id', 'text', (column) => column.notNull().references('auth_users.id').onDelete('cascade'))
    .addColumn('access_token', 'text')
    .addColumn('refresh_token', 'text')
    .addColumn('id_token', 'text')
    .addColumn('access_token_expires_at', date)
    .addColumn('refresh_token_expires_at', date)
    .addColumn('scope', 'text')
    .addColumn('password', 'text')
    .addColumn('created_at', date, (column) => column.notNull())
    .addColumn('updated_at', date, (column) => column.notNull())
    .execute();
  await db.schema.createIndex('auth_credentials_user_id_idx').on('auth_credentials').column('user_id').execute();
  await db.schema
    .createTable('auth_verifications')
    .addColumn('id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('identifier', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('expires_at', date, (column) => column.notNull())
    .addColumn('created_at', date, (column) => column.notNull())
    .addColumn('updated_at', date, (column) => column.notNull())
    .execute();
  await db.schema.createIndex('auth_verifications_identifier_idx').on('auth_verifications').column('identifier').execute();
  await db.schema
    .createTable('auth_device_codes')
    .addColumn('id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('device_code', 'text', (column) => column.notNull())
    .addColumn('user_code', 'text', (column) => column.notNull())
    .addColumn('user_id', 'text')
    .addColumn('expires_at', date, (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('last_polled_at', date)
    .addColumn('polling_interval', 'integer')
    .addColumn('client_id', 'text')
    .addColumn('scope', 'text')
    .execute();
  for (const code of ['device_code', 'user_code']) {
    await db.schema.createIndex(`auth_device_codes_${code}_uidx`).unique().on('auth_device_codes').column(code).execute();
  }
}
