/** `newerProgram`: this coordinator with one more migration, like a later release. For upgrade tests. */
import type { Migration } from 'kysely';
import type { MigrationDescription } from '../../src/database/migrations/describe-migration.js';
import { type SchemaProgram, thisProgram } from '../../src/database/migrations/schema-state.js';

export const FUTURE_MIGRATION = '9999_from_the_future';
export const EXPAND: MigrationDescription = { kind: 'expand', effect: null, oldestProgram: null };

/** The additional migration adds a table, and a column with a default to `accounts`. */
export function newerProgram(version: string, description: MigrationDescription = EXPAND): SchemaProgram {
  const { migrations, describe } = thisProgram();
  const up: Migration['up'] = async (database) => {
    await database.schema.createTable('from_the_future').addColumn('id', 'text').execute();
    await database.schema
      .alterTable('accounts')
      .addColumn('from_the_future', 'text', (column) => column.notNull().defaultTo(''))
      .execute();
  };
  return {
    version,
    migrations: { ...migrations, [FUTURE_MIGRATION]: { up } },
    describe: (name) => (name === FUTURE_MIGRATION ? description : describe(name)),
  };
}
