/**
 * Opens the embedded database and brings its schema up to date. SQLite with a write-ahead log, a busy timeout and foreign
 * keys enforced; PostgreSQL can take its place as another Kysely dialect, because nothing else here knows which one runs.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely, type MigrationProvider, Migrator, SqliteDialect } from 'kysely';
import { reasonOf, StartError } from '../start-error.js';
import { MIGRATIONS } from './migrations.js';
import type { Database, Tables } from './tables.js';

const BUSY_TIMEOUT_MS = 5000;

/** Opens (and creates) the database file. Throws {@link StartError} when it cannot be used. Callers destroy the database. */
export async function openDatabase(file: string): Promise<Database> {
  const database = new Kysely<Tables>({ dialect: new SqliteDialect({ database: openFile(file) }) });
  try {
    await migrate(database);
  } catch (error) {
    await database.destroy();
    throw error;
  }
  return database;
}

/** Runs the migrations that have not run yet. Throws {@link StartError} when one fails or when the file is from a newer program. */
export async function migrate(database: Database): Promise<void> {
  const provider: MigrationProvider = { getMigrations: async () => ({ ...MIGRATIONS }) };
  const { error, results } = await new Migrator({ db: database, provider }).migrateToLatest();
  if (error === undefined) return;
  const failed = results?.find((result) => result.status === 'Error');
  const what = failed === undefined ? 'could not be brought up to date' : `failed in migration ${failed.migrationName}`;
  throw new StartError(`The database ${what}: ${reasonOf(error)}.`, { cause: error });
}

function openFile(file: string): Sqlite.Database {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const sqlite = new Sqlite(file, { timeout: BUSY_TIMEOUT_MS });
    chmodSync(file, 0o600);
    sqlite.pragma('journal_mode = WAL');
    sqlite.pragma('synchronous = NORMAL');
    sqlite.pragma('foreign_keys = ON');
    return sqlite;
  } catch (error) {
    throw new StartError(`The database ${file} cannot be opened: ${reasonOf(error)}.`, { cause: error });
  }
}
