/** Creates the tables of organisations (accounts without a sign-in of their own), their members and invitations. */
import type { Kysely, Migration } from 'kysely';

export const organisations: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('organisations')
      .addColumn('account_id', 'text', (column) => column.primaryKey().references('accounts.id'))
      .addColumn('created_by', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('organisations_by_creator').on('organisations').column('created_by').execute();
    await db.schema
      .createTable('organisation_members')
      .addColumn('organisation_id', 'text', (column) => column.notNull().references('organisations.account_id'))
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('role', 'text', (column) => column.notNull())
      .addColumn('joined_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('organisation_members_pk', ['organisation_id', 'user_id'])
      .execute();
    await db.schema.createIndex('organisation_members_by_user').on('organisation_members').column('user_id').execute();
    await db.schema
      .createTable('organisation_invitations')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('organisation_id', 'text', (column) => column.notNull().references('organisations.account_id'))
      .addColumn('email', 'text', (column) => column.notNull())
      .addColumn('role', 'text', (column) => column.notNull())
      .addColumn('token_hash', 'text', (column) => column.notNull().unique())
      .addColumn('invited_by', 'text', (column) => column.notNull())
      .addColumn('sent_at', 'bigint', (column) => column.notNull())
      .addColumn('sent_count', 'integer', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addUniqueConstraint('organisation_invitations_email', ['organisation_id', 'email'])
      .execute();
  },
};
