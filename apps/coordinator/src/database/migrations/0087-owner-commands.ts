/** Creates the table of commands that owners sent to their providers from the console, with their outcomes. */
import type { Kysely, Migration } from 'kysely';

export const ownerCommands: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('owner_commands')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull())
      .addColumn('provider_id', 'text', (column) => column.notNull())
      .addColumn('actor_id', 'text', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('action', 'text', (column) => column.notNull())
      .addColumn('outcome', 'text')
      .addColumn('refusal', 'text')
      .execute();
    await db.schema
      .createIndex('owner_commands_of_machine')
      .on('owner_commands')
      .columns(['account_id', 'provider_id', 'at', 'id'])
      .execute();
    await db.schema.createIndex('owner_commands_by_time').on('owner_commands').columns(['account_id', 'at', 'id']).execute();
  },
};
