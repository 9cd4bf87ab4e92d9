/** Brings a database to the schema of this program. */
import { type Kysely, MIGRATION_LOCK_ID, type Migration, Migrator } from 'kysely';
import { StartupError } from '../../config/startup-error.js';
import { currentSchema, HISTORY_TABLE, LOCK_TABLE, prepareHistory, recordCompatibility } from './history.js';
import { readSchemaState, type SchemaProgram, thisProgram } from './schema-state.js';

const NOTHING: Migration = { up: async () => {} };

/**
 * SQLSTATEs of a table that another program creates at the same time. Release 0.1.0 creates its own tables before it takes the lock.
 */
const CONCURRENT_CREATION: ReadonlySet<unknown> = new Set(['23505', '42P07']);

/**
 * Runs pending migrations under a lock, all in one transaction. Returns their names. Throws {@link StartupError} if this program is too
 * old for the database, {@link FailedMigration} if a migration fails, and any error of the connection.
 */
export async function runMigrations<T>(database: Kysely<T>, program: SchemaProgram = thisProgram()): Promise<string[]> {
  try {
    return await migrateOnce(database, program);
  } catch (error) {
    if (!CONCURRENT_CREATION.has((error as { code?: unknown }).code)) throw error;
    return migrateOnce(database, program);
  }
}

/** Takes the migration library's lock before it reads the history: release 0.1.0 may be migrating under the same lock. */
async function migrateOnce<T>(database: Kysely<T>, program: SchemaProgram): Promise<string[]> {
  const schema = await currentSchema(database);
  // Without a schema, the library takes tables of other schemas for its own.
  const inSchema = schema === undefined ? {} : { migrationTableSchema: schema };
  const { adapter } = database.getExecutor();
  const lock = { lockTable: LOCK_TABLE, lockRowId: MIGRATION_LOCK_ID, ...(schema === undefined ? {} : { lockTableSchema: schema }) };
  // The lock belongs to the connection, so the library can acquire the lock again.
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
  // The library would lock the database and read the columns of all tables.
  if (pending.length === 0) return [];
  const own = Object.entries(program.migrations).map(([name, migration]) => [name, recordAfter(name, migration, program)] as const);
  // The library refuses histories with unknown names.
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

function recordAfter(name: string, migration: Migration, { describe }: SchemaProgram): Migration {
  return {
    async up(transaction) {
      await migration.up(transaction);
      await recordCompatibility(transaction, name, describe(name));
    },
  };
}
