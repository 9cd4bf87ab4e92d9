/** `openDatabase` opens SQLite or PostgreSQL and migrates the schema under a lock. A failed migration stops the start. */
import { type Dialect, Kysely } from 'kysely';
import { errorReason, StartupError } from '../../config/startup-error.js';
import { FailedMigration, runMigrations } from '../migrations/run-migrations.js';
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

/** Runs pending migrations. Throws {@link StartupError} if one fails, or if this program is too old for the database. */
async function migrate(database: Database): Promise<void> {
  try {
    await runMigrations(database);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    const isFailed = error instanceof FailedMigration;
    const what = isFailed ? `failed in migration ${error.migration}` : 'could not be brought up to date';
    const reason = errorReason(isFailed ? error.cause : error);
    const words = REFUSALS[reason];
    throw new StartupError(`The database ${what}: ${reason}${words === undefined ? '' : ` (${words})`}.`, { cause: error });
  }
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
