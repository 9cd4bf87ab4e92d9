/** Brings a database to the schema of this program, and decides whether this program runs with the schema of a newer one. */
import { compareVersions } from '@inference/protocol';
import { type Kysely, type Migration, Migrator } from 'kysely';
import { programVersion } from '../../config/program-version.js';
import { StartupError } from '../../config/startup-error.js';
import { MIGRATIONS } from './all.js';
import { describeMigration, type MigrationDescription } from './descriptions.js';
import { type AppliedMigration, appliedMigrations, HISTORY_TABLE, LOCK_TABLE, prepareHistory, recordForOlderPrograms } from './history.js';

/** A program as the database sees it. Tests pass other versions and migrations. */
export interface SchemaProgram {
  readonly version: string;
  readonly migrations: Readonly<Record<string, Migration>>;
  readonly describe: (name: string) => MigrationDescription;
}

export interface SchemaState {
  /** Names of this program's migrations that ran, in order. */
  readonly applied: readonly string[];
  /** Names of this program's migrations that did not run yet, in order. */
  readonly pending: readonly string[];
  /** Migrations of newer programs that ran. */
  readonly newer: readonly AppliedMigration[];
}

const NOTHING: Migration = { up: async () => {} };

export function thisProgram(): SchemaProgram {
  return { version: programVersion(), migrations: MIGRATIONS, describe: describeMigration };
}

/** Compares a database with a program. Changes nothing; an empty database has every migration pending. */
export async function readSchemaState<T>(database: Kysely<T>, program: SchemaProgram = thisProgram()): Promise<SchemaState> {
  return schemaStateOf(await appliedMigrations(database), program);
}

export function schemaStateOf(history: readonly AppliedMigration[], program: SchemaProgram): SchemaState {
  const ran = new Set(history.map(({ name }) => name));
  const names = Object.keys(program.migrations).sort();
  return {
    applied: names.filter((name) => ran.has(name)),
    pending: names.filter((name) => !ran.has(name)),
    newer: history.filter(({ name }) => !Object.hasOwn(program.migrations, name)),
  };
}

/** Why a program must not run with migrations of newer programs, as one sentence; null if it may. */
export function whyTooOld(newer: readonly AppliedMigration[], version: string): string | null {
  for (const { name, oldestProgram } of newer) {
    if (oldestProgram === null) continue;
    if (oldestProgram === undefined) return `it has migration ${name}, which coordinator ${version} does not know`;
    if (compareVersions(version, oldestProgram) < 0) {
      return `since migration ${name} it needs coordinator ${oldestProgram} or newer, and this is ${version}`;
    }
  }
  return null;
}

/**
 * Runs pending migrations under a lock, all in one transaction. Returns their names. Throws {@link StartupError} if this program is too
 * old for the database, {@link FailedMigration} if a migration fails, and any error of the connection.
 */
export async function runMigrations<T>(database: Kysely<T>, program: SchemaProgram = thisProgram()): Promise<string[]> {
  await prepareHistory(database);
  const { newer } = await readSchemaState(database, program);
  const reason = whyTooOld(newer, program.version);
  if (reason !== null) {
    throw new StartupError(
      `The database is too new: ${reason}. Start a newer coordinator, or restore the backup from before the upgrade (docs/upgrading.md).`,
    );
  }
  const own = Object.entries(program.migrations).map(([name, migration]) => [name, recorded(name, migration, program)] as const);
  // The library refuses histories with names that it does not get.
  const later = newer.map(({ name }) => [name, NOTHING] as const);
  const { error, results = [] } = await new Migrator({
    db: database,
    provider: { getMigrations: async () => Object.fromEntries([...own, ...later]) },
    migrationTableName: HISTORY_TABLE,
    migrationLockTableName: LOCK_TABLE,
  }).migrateToLatest();
  if (error === undefined) return results.map(({ migrationName }) => migrationName);
  const failed = results.find(({ status }) => status === 'Error');
  throw failed === undefined ? error : new FailedMigration(failed.migrationName, error);
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
      await recordForOlderPrograms(transaction, name, describe(name));
    },
  };
}
