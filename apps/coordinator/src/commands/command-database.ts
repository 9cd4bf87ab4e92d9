/** Finds and opens the configured database for a command such as `admin` or `check`. `serve` opens its own in wiring/database.ts. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import type { Config } from '../config/config.js';
import { errorReason, StartupError } from '../config/startup-error.js';
import { type DatabaseTarget, databaseError, openDatabase } from '../database/connection/open-database.js';
import { postgresDialect } from '../database/connection/postgres.js';
import type { Database, Tables } from '../database/tables.js';

type DatabaseSettings = Pick<Config, 'dataDir' | 'databaseUrl'>;

/** The coordinator's folder in the data directory, with the database file, keys and images. */
export function coordinatorDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'coordinator');
}

/** PostgreSQL at `DATABASE_URL`, else the file in the data directory. */
export function databaseTarget(config: DatabaseSettings): DatabaseTarget {
  return config.databaseUrl === null ? { file: join(coordinatorDirectory(config), 'coordinator.db') } : { url: config.databaseUrl };
}

/** Describes the database for output, without user and password: `SQLite, /data/coordinator/coordinator.db`. */
export function databasePlace(config: DatabaseSettings): string {
  const target = databaseTarget(config);
  if ('file' in target) return `SQLite, ${target.file}`;
  const { hostname, port, pathname } = new URL(target.url);
  return `PostgreSQL, ${decodeURIComponent(pathname.slice(1)) || 'default database'} on ${hostname || 'the local socket'}${port && `:${port}`}`;
}

/** Runs `work` on an existing database whose schema is up to date. Throws StartupError for a missing, older or newer database. */
export async function withDatabase<T>(config: DatabaseSettings, work: (database: Database) => Promise<T>): Promise<T> {
  const target = databaseTarget(config);
  if ('file' in target && !existsSync(target.file)) {
    throw new StartupError(
      `There is no database ${target.file}; set DATA_DIR or DATABASE_URL, or create one: inference-coordinator migrate`,
    );
  }
  const database = await openDatabase(target, { migrate: false });
  try {
    return await work(database);
  } finally {
    await database.destroy();
  }
}

/** Runs `work` on a database of any schema version, without migrating. `work` gets null if the file is missing. Throws StartupError. */
export async function withUnmigrated<T>(config: DatabaseSettings, work: (database: Database | null) => Promise<T>): Promise<T> {
  const target = databaseTarget(config);
  if ('file' in target && !existsSync(target.file)) {
    // Loads the SQLite driver, so that a broken installation is reported although there is no file to open.
    openSqlite(target.file, {}, ':memory:').close();
    return work(null);
  }
  const dialect = 'url' in target ? postgresDialect({ url: target.url, maxConnections: 1 }) : readOnlySqlite(target.file);
  const database = new Kysely<Tables>({ dialect });
  try {
    return await work(database);
  } catch (error) {
    throw error instanceof StartupError ? error : databaseError('cannot be read', error);
  } finally {
    await database.destroy();
  }
}

function readOnlySqlite(file: string): SqliteDialect {
  return new SqliteDialect({ database: openSqlite(file, { readonly: true, fileMustExist: true }) });
}

/** Opens `path`. Error messages name `file`. */
function openSqlite(file: string, options: Sqlite.Options, path = file): Sqlite.Database {
  try {
    return new Sqlite(path, options);
  } catch (error) {
    throw new StartupError(`The database ${file} cannot be opened: ${errorReason(error)}.`, { cause: error });
  }
}
