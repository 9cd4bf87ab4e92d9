/** `copySqlite`: copies a SQLite file, even in use, without the rows of `secrets`. `isInUse`: whether another process has a file open. */
import { chmodSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { errorReason, StartupError } from '../../config/startup-error.js';
import type { Tables } from '../tables.js';
import { type DatabaseFigures, databaseFigures } from './database-figures.js';
import type { SecretRow } from './restored-rows.js';

/** Maximum wait for another process's lock. The wait blocks this thread. */
const LOCK_WAIT_MS = 5000;

export interface CopiedDatabase {
  readonly figures: DatabaseFigures;
  readonly secrets: readonly SecretRow[];
}

/**
 * Copies a database file by `VACUUM INTO`, which is one read transaction. Blocks this thread, but no writers.
 *
 * Deleted rows are not copied.
 *
 * @throws {StartupError} The file is missing, or is no database of a coordinator.
 */
export async function copySqlite(file: string, copy: string): Promise<CopiedDatabase> {
  const source = openExisting(file);
  try {
    source.prepare('vacuum into ?').run(copy);
  } finally {
    source.close();
  }
  chmodSync(copy, 0o600);
  const secrets = takeSecrets(copy);
  const database = new Kysely<Tables>({ dialect: new SqliteDialect({ database: new Sqlite(copy, { readonly: true }) }) });
  try {
    return { figures: await databaseFigures(database), secrets };
  } finally {
    await database.destroy();
  }
}

function openExisting(file: string): Sqlite.Database {
  try {
    // Not read-only: a read-only connection would leave files `-wal` and `-shm` if no coordinator runs.
    return new Sqlite(file, { fileMustExist: true, timeout: LOCK_WAIT_MS });
  } catch (error) {
    throw new StartupError(`The database ${file} cannot be opened: ${errorReason(error)}. Set DATA_DIR or DATABASE_URL.`, { cause: error });
  }
}

/** Reads the secrets of a copy, then deletes them there and overwrites their bytes with zeros. */
function takeSecrets(copy: string): SecretRow[] {
  const database = new Sqlite(copy);
  try {
    database.pragma('secure_delete = on');
    const secrets = database.prepare<[], SecretRow>('select name, value from secrets order by name').all();
    database.exec('delete from secrets');
    return secrets;
  } catch (error) {
    throw new StartupError(`The database is not one of a coordinator: ${errorReason(error)}.`, { cause: error });
  } finally {
    database.close();
  }
}

/** Whether another process has the database file open. In WAL mode, the exclusive lock is granted only to a sole user of the file. */
export function isInUse(file: string): boolean {
  const database = new Sqlite(file, { timeout: 0, fileMustExist: true });
  try {
    database.pragma('locking_mode = exclusive');
    database.exec('begin exclusive');
    database.exec('rollback');
    return false;
  } catch (error) {
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) return true;
    // A damaged file cannot be in use.
    if (error instanceof Sqlite.SqliteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code)) return false;
    throw error;
  } finally {
    database.close();
  }
}
