/** `openDatabase`: connects to SQLite or PostgreSQL, and applies pending migrations. Errors explain to the operator what is wrong. */
import { type Dialect, Kysely } from 'kysely';
import { errorReason, isUnknownAuthority, StartupError } from '../../config/startup-error.js';
import { FailedMigration, runMigrations, tooNew } from '../migrations/run-migrations.js';
import { readSchemaState } from '../migrations/schema-state.js';
import type { Database, Tables } from '../tables.js';
import { sqliteDialect } from './sqlite.js';

/** Location of the data: a SQLite file of this coordinator, or a PostgreSQL database. */
export type DatabaseTarget =
  /** `busyMs`: maximum wait for another process that holds the file's write lock. */
  | { readonly file: string; readonly busyMs?: number }
  | { readonly url: string; readonly maxConnections?: number; readonly onConnectionLost?: (error: Error) => void };

/** Explanations for the operator. Key: SQLSTATE (PostgreSQL documentation, appendix A) or system error code. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  '28000': 'the server does not let this user in',
  '28P01': 'the server refuses the password',
  '3D000': 'the server has no database of this name; createdb makes one',
  '42501': 'this user may not make tables there; the owner of the database may',
  ECONNREFUSED: 'no server listens there',
  ENOTFOUND: 'there is no host of this name',
};

/**
 * Opens the database, creates a missing SQLite file, and applies pending migrations. The caller must destroy the database.
 *
 * With `migrate: false` no migration is applied, and a database that lacks one is an error.
 *
 * @throws {StartupError} The database is unusable.
 */
export async function openDatabase(target: DatabaseTarget, { migrate = true }: { readonly migrate?: boolean } = {}): Promise<Database> {
  if (migrate && 'file' in target) return openPrepared(sqliteDialect(target.file, target.busyMs), applyMigrations);
  if (migrate) await migrateDatabase(target);
  return openPrepared(await dialectFor(target), migrate ? async () => {} : requireMigrations);
}

/** Applies pending migrations and returns their names. Throws {@link StartupError}. */
export async function migrateDatabase(target: DatabaseTarget): Promise<readonly string[]> {
  // Without a statement timeout, because the migration of a large table may take long.
  const dialect =
    'url' in target ? await postgres({ url: target.url, maxConnections: 1, statementTimeoutMs: 0 }) : await dialectFor(target);
  let applied: readonly string[] = [];
  const database = await openPrepared(dialect, async (first) => {
    applied = await applyMigrations(first);
  });
  await database.destroy();
  return applied;
}

async function applyMigrations(database: Database): Promise<readonly string[]> {
  try {
    return await runMigrations(database);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    if (error instanceof FailedMigration) throw databaseError(`failed in migration ${error.migration}`, error.cause);
    throw databaseError('could not be brought up to date', error);
  }
}

/** Throws {@link StartupError} if the database is unreadable, lacks migrations of this program, or is too new. */
async function requireMigrations(database: Database): Promise<void> {
  const { pending, refusal } = await readSchemaState(database).catch((error: unknown) => {
    throw databaseError('cannot be read', error);
  });
  if (refusal !== null) throw tooNew(refusal);
  if (pending.length === 0) return;
  const count = pending.length === 1 ? 'a migration' : `${pending.length} migrations, the first is`;
  throw new StartupError(`The database lacks ${count} ${pending[0]}. To apply: inference-coordinator migrate`);
}

export function databaseError(what: string, error: unknown): StartupError {
  return new StartupError(`The database ${what}: ${refusalReason(error)}.`, { cause: error });
}

/** Reason of a database error, with an explanation for the operator if one is known. */
export function refusalReason(error: unknown): string {
  const reason = errorReason(error);
  const words = isUnknownAuthority(reason) ? 'NODE_EXTRA_CA_CERTS must name the root certificate of its authority' : EXPLANATIONS[reason];
  return `${reason.replace(/\.$/, '')}${words === undefined ? '' : ` (${words})`}`;
}

async function dialectFor(target: DatabaseTarget): Promise<Dialect> {
  return 'url' in target ? postgres(target) : sqliteDialect(target.file, target.busyMs);
}

async function postgres(options: Parameters<typeof import('./postgres.js')['postgresDialect']>[0]): Promise<Dialect> {
  // Imported on demand, so that a coordinator with SQLite starts faster.
  const { postgresDialect } = await import('./postgres.js');
  return postgresDialect(options);
}

async function openPrepared(dialect: Dialect, prepare: (database: Database) => Promise<unknown>): Promise<Database> {
  const database = new Kysely<Tables>({ dialect });
  try {
    await prepare(database);
  } catch (error) {
    await database.destroy();
    throw error;
  }
  return database;
}
