/** `readSchemaState`: applied and pending migrations of a database, and whether this version of the program may use it. */
import { compareVersions } from '@inference/protocol';
import type { Kysely, Migration } from 'kysely';
import { programVersion } from '../../config/program-version.js';
import { MIGRATIONS } from './all.js';
import { describeMigration, type MigrationDescription } from './describe-migration.js';
import { type AppliedMigration, appliedMigrations } from './history.js';

/** Version and migrations of the program. Tests pass others. */
export interface SchemaProgram {
  readonly version: string;
  readonly migrations: Readonly<Record<string, Migration>>;
  readonly describe: (name: string) => MigrationDescription;
}

export interface SchemaState {
  /** Applied migrations in order, including migrations of newer programs. */
  readonly applied: readonly string[];
  /** Pending migrations of this program, in order. */
  readonly pending: readonly string[];
  /** Applied migrations of newer programs. */
  readonly unknown: readonly string[];
  /** Reason why this program must not use the database, as part of a sentence; null: it may. */
  readonly refusal: string | null;
}

export function thisProgram(): SchemaProgram {
  return { version: programVersion(), migrations: MIGRATIONS, describe: describeMigration };
}

/** Reads the state without changes. `database` null: the database does not exist yet. */
export async function readSchemaState<T>(database: Kysely<T> | null, program: SchemaProgram = thisProgram()): Promise<SchemaState> {
  return schemaStateOf(database === null ? [] : await appliedMigrations(database), program);
}

export function schemaStateOf(history: readonly AppliedMigration[], program: SchemaProgram): SchemaState {
  const applied = history.map(({ name }) => name);
  const ran = new Set(applied);
  const unknown = history.filter(({ name }) => isUnknown(name, program));
  return {
    applied,
    pending: Object.keys(program.migrations)
      .filter((name) => !ran.has(name))
      .sort(),
    unknown: unknown.map(({ name }) => name),
    refusal: whyTooOld(unknown, program.version),
  };
}

/** Returns the names that are not migrations of this program. */
export function unknownMigrations(names: readonly string[]): string[] {
  const program = thisProgram();
  return names.filter((name) => isUnknown(name, program));
}

function isUnknown(name: string, { migrations }: SchemaProgram): boolean {
  return !Object.hasOwn(migrations, name);
}

function whyTooOld(unknown: readonly AppliedMigration[], version: string): string | null {
  for (const { name, oldestProgram } of unknown) {
    if (oldestProgram === null) continue;
    if (oldestProgram === undefined) return `it has migration ${name}, which coordinator ${version} does not know`;
    if (compareVersions(version, oldestProgram) < 0) {
      return `since migration ${name} it needs coordinator ${oldestProgram} or newer, and this is ${version}`;
    }
  }
  return null;
}
