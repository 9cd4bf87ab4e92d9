/** `readSchemaState`: migrations that a database has and lacks. Changes nothing. */
import type { Database } from '../tables.js';
import { MIGRATIONS } from './all.js';

export interface SchemaState {
  /** Applied migrations in order, also those that this program does not know. */
  readonly applied: readonly string[];
  /** Migrations of this program that the database lacks, in order. */
  readonly pending: readonly string[];
  /** Applied migrations of a newer program. */
  readonly unknown: readonly string[];
}

/** `database` null: a database that does not exist yet. */
export async function readSchemaState(database: Database | null): Promise<SchemaState> {
  const applied = database === null ? [] : await appliedMigrations(database);
  const known = Object.keys(MIGRATIONS).sort();
  return {
    applied,
    pending: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)),
  };
}

async function appliedMigrations(database: Database): Promise<string[]> {
  const tables = await database.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === 'kysely_migration')) return [];
  const rows = await database.withTables<{ kysely_migration: { name: string } }>().selectFrom('kysely_migration').select('name').execute();
  return rows.map(({ name }) => name).sort();
}
