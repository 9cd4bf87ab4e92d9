/** Creates better-auth's table of two-factor authentication, with a column for the time step of the last used code. */
import type { Kysely, Migration } from 'kysely';
import { dialectOf } from '../connection/dialect.js';

export const twoFactor: Migration = {
  async up(db: Kysely<unknown>) {
    const isPostgres = dialectOf(db) === 'postgres';
    const flag = isPostgres ? 'boolean' : 'integer';
    await db.schema.alterTable('auth_users').addColumn('two_factor_enabled', flag).execute();
    await db.schema
      .createTable('auth_two_factors')
      .addColumn('id', 'text', (column) => column.notNull().primaryKey())
      .addColumn('secret', 'text', (column) => column.notNull())
      .addColumn('backup_codes', 'text', (column) => column.notNull())
      .addColumn('user_id', 'text', (column) => column.notNull().unique().references('auth_users.id').onDelete('cascade'))
      .addColumn('verified', flag)
      .addColumn('failed_verification_count', 'integer')
      .addColumn('locked_until', isPostgres ? 'timestamptz' : 'date')
      .addColumn('last_used_step', 'integer')
      .execute();
  },
};
