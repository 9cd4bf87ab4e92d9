/** `runMigrations`: applies the pending migrations of this program to a database. */
import { type Kysely, MIGRATION_LOCK_ID, type Migration, Migrator } from 'kysely';
import { StartupError } from '../../config/startup-error.js';
import { currentSchema, HISTORY_TABLE, LOCK_TABLE, prepareHistory, recordCompatibility } from './history.js';
import { readSchemaState, type SchemaProgram, thisProgram } from './schema-state.js';

const NOTHING: Migration = { up: async () => {} };

/**
 * SQLSTATEs of a table that another coordinator creates at the same time. Release 0.1.0 creates its tables before it takes the lock.
 */
const CONCURRENT_CREATION: ReadonlySet<unknown> = new Set(['23505', '42P07']);

/**
 * Applies all pending migrations in one transaction, under a lock. Returns their names.
 *
 * @throws {StartupError} This program is too old for the database.
 * @throws {FailedMigration} A migration failed. Other errors are those of the connection.
 */
export async function runMigrations<T>(database: Kysely<T>, program: SchemaProgram = thisProgram()): Promise<string[]> {
  try {
    return await migrateOnce(database, program);
  } catch (error) {
    if (!CONCURRENT_CREATION.has((error as { code?: unknown }).code)) throw error;
    return migrateOnce(database, program);
  }
}

/** Takes the lock of Kysely's Migrator before it reads the history, because release 0.1.0 may be migrating under the same lock. */
async function migrateOnce<T>(database: Kysely<T>, program: SchemaProgram): Promise<string[]> {
  const schema = await currentSchema(database);
  // Without a schema, Kysely would use migration tables of other schemas.
  const inSchema = schema === undefined ? {} : { migrationTableSchema: schema };
  const { adapter } = database.getExecutor();
  const lock = { lockTable: LOCK_TABLE, lockRowId: MIGRATION_LOCK_ID, ...(schema === undefined ? {} : { lockTableSchema: schema }) };
  // The lock belongs to the connection, so the Migrator can acquire it again on the same connection.
  return database.connection().execute(async (connection) => {
    await adapter.acquireMigrationLock(connection, lock);
    try {
      return await migrateLocked(connection, program, inSchema);
    } finally {
      await adapter.releaseMigrationLock(connection, lock);
    }
  });
}

async function migrateLocked<T>(
  database: Kysely<T>,
  program: SchemaProgram,
  inSchema: { readonly migrationTableSchema?: string },
): Promise<string[]> {
  await prepareHistory(database);
  const { pending, unknown, refusal } = await readSchemaState(database, program);
  if (refusal !== null) throw tooNew(refusal);
  // Returns early, because the Migrator would read the columns of all tables.
  if (pending.length === 0) return [];
  const own = Object.entries(program.migrations).map(([name, migration]) => [name, recordAfter(name, migration, program)] as const);
  // The Migrator refuses a history with unknown names, so newer migrations are added as no-ops.
  const later = unknown.map((name) => [name, NOTHING] as const);
  const { error, results = [] } = await new Migrator({
    db: database,
    provider: { getMigrations: async () => Object.fromEntries([...own, ...later]) },
    migrationTableName: HISTORY_TABLE,
    migrationLockTableName: LOCK_TABLE,
    ...inSchema,
  }).migrateToLatest();
  if (error === undefined) return results.map(({ migrationName }) => migrationName);
  const failed = results.find(({ status }) => status === 'Error');
  throw failed === undefined ? error : new FailedMigration(failed.migrationName, error);
}

/** Error for the operator. `refusal`: value of `SchemaState.refusal`. */
export function tooNew(refusal: string): StartupError {
  return new StartupError(
    `The database is too new: ${refusal}. Start a newer coordinator, or restore the backup from before the upgrade (docs/upgrading.md).`,
  );
}

/** A migration failed, so all pending migrations were rolled back. `cause`: the error of the database. */
export class FailedMigration extends Error {
  readonly migration: string;

  constructor(migration: string, cause: unknown) {
    super(`migration ${migration} failed`, { cause });
    this.migration = migration;
  }
}

function recordAfter(name: string, migration: Migration, { describe }: SchemaProgram): Migration {
  return {
    async up(transaction) {
      await migration.up(transaction);
      await recordCompatibility(transaction, name, describe(name));
    },
  };
}
