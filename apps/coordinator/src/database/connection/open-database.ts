/** `openDatabase` opens SQLite or PostgreSQL and migrates the schema under a lock. A failed migration stops the start. */
import { type Dialect, Kysely, type MigrationProvider, Migrator } from 'kysely';
import { errorReason, StartupError } from '../../config/startup-error.js';
import { MIGRATIONS } from '../migrations/all.js';
import type { Database, Tables } from '../tables.js';
import { sqliteDialect } from './sqlite.js';

/** Location of the data: a file of this coordinator, or a PostgreSQL database. */
export type DatabaseTarget =
  | { readonly file: string /** Maximum wait for another process that holds the lock. */; readonly busyMs?: number }
  | { readonly url: string; readonly maxConnections?: number; readonly onConnectionLost?: (error: Error) => void };

/** Explanations of server refusals during setup, by SQLSTATE (PostgreSQL, appendix A). */
const REFUSALS: Readonly<Record<string, string>> = {
  '28000': 'the server does not let this user in',
  '28P01': 'the server refuses the password',
  '3D000': 'the server has no database of this name; createdb makes one',
  '42501': 'this user may not make tables there; the owner of the database may',
};

/**
 * Opens, creates or migrates the database. Throws {@link StartupError} if the database is unusable. Callers destroy the database.
 */
export async function openDatabase(target: DatabaseTarget): Promise<Database> {
  if ('url' in target) {
    // Imported on demand: a coordinator with the embedded database starts faster without the driver.
    const { postgresDialect } = await import('./postgres.js');
    // Only migrations run without a statement timeout: a large table may take long.
    const first = await migrated(postgresDialect({ url: target.url, maxConnections: 1, statementTimeoutMs: 0 }));
    await first.destroy();
    return new Kysely<Tables>({ dialect: postgresDialect(target) });
  }
  return migrated(sqliteDialect(target.file, target.busyMs));
}

/** Runs pending migrations. Throws {@link StartupError} if one fails, or if the database is from a newer program. */
async function migrate(database: Database): Promise<void> {
  const provider: MigrationProvider = { getMigrations: async () => ({ ...MIGRATIONS }) };
  const { error, results } = await new Migrator({ db: database, provider }).migrateToLatest();
  if (error === undefined) return;
  const failed = results?.find((result) => result.status === 'Error');
  const what = failed === undefined ? 'could not be brought up to date' : `failed in migration ${failed.migrationName}`;
  throw new StartupError(`The database ${what}: ${refusalReason(error)}.`, { cause: error });
}

/** Code of an error, with words for refusals of a PostgreSQL server. */
export function refusalReason(error: unknown): string {
  const reason = errorReason(error);
  const words = REFUSALS[reason];
  return words === undefined ? reason : `${reason} (${words})`;
}

async function migrated(dialect: Dialect): Promise<Database> {
  const database = new Kysely<Tables>({ dialect });
  try {
    await migrate(database);
  } catch (error) {
    await database.destroy();
    throw error;
  }
  return database;
}
