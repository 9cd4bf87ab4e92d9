/** Brings a database to the schema of this program. */
import { type Kysely, type Migration, Migrator } from 'kysely';
import { StartupError } from '../../config/startup-error.js';
import { currentSchema, HISTORY_TABLE, LOCK_TABLE, prepareHistory, recordCompatibility } from './history.js';
import { readSchemaState, type SchemaProgram, thisProgram } from './schema-state.js';

const NOTHING: Migration = { up: async () => {} };

/**
 * Runs pending migrations under a lock, all in one transaction. Returns their names. Throws {@link StartupError} if this program is too
 * old for the database, {@link FailedMigration} if a migration fails, and any error of the connection.
 */
export async function runMigrations<T>(database: Kysely<T>, program: SchemaProgram = thisProgram()): Promise<string[]> {
  await prepareHistory(database);
  const { pending, unknown, refusal } = await readSchemaState(database, program);
  if (refusal !== null) throw tooNew(refusal);
  // The library would lock the database and read the columns of all tables.
  if (pending.length === 0) return [];
  const own = Object.entries(program.migrations).map(([name, migration]) => [name, recorded(name, migration, program)] as const);
  // The library refuses histories with names that it does not get.
  const later = unknown.map((name) => [name, NOTHING] as const);
  const schema = await currentSchema(database);
  const { error, results = [] } = await new Migrator({
    db: database,
    provider: { getMigrations: async () => Object.fromEntries([...own, ...later]) },
    migrationTableName: HISTORY_TABLE,
    migrationLockTableName: LOCK_TABLE,
    // Without it, the library takes tables of other schemas for its own.
    ...(schema === undefined ? {} : { migrationTableSchema: schema }),
  }).migrateToLatest();
  if (error === undefined) return results.map(({ migrationName }) => migrationName);
  const failed = results.find(({ status }) => status === 'Error');
  throw failed === undefined ? error : new FailedMigration(failed.migrationName, error);
}

/** Error for the operator. `refusal`: that of the schema's state. */
export function tooNew(refusal: string): StartupError {
  return new StartupError(
    `The database is too new: ${refusal}. Start a newer coordinator, or restore the backup from before the upgrade (docs/upgrading.md).`,
  );
}

/** A migration failed; nothing of this start's migrations remains. `cause`: the error of the database. */
export class FailedMigration extends Error {
  readonly migration: string;

  constructor(migration: string, cause: unknown) {
    super(`migration ${migration} failed`, { cause });
    this.migration = migration;
  }
}

function recorded(name: string, migration: Migration, { describe }: SchemaProgram): Migration {
  return {
    async up(transaction) {
      await migration.up(transaction);
      await recordCompatibility(transaction, name, describe(name));
    },
  };
}
