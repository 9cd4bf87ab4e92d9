/**
 * Migration history in the database: which migrations were applied, and the oldest release that still works after each.
 *
 * Release 0.1.0 refuses to start if its history table, `kysely_migration`, names an unknown migration. Newer releases therefore use
 * another table. `kysely_migration` gets only migrations that 0.1.0 knows, and migrations after which 0.1.0 must not start.
 */
import { type Kysely, type QueryExecutorProvider, sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';
import type { MigrationDescription } from './describe-migration.js';

/** History table of releases after 0.1.0, with names and times. Kysely's Migrator writes it. */
export const HISTORY_TABLE = 'schema_migrations';
/** Lock table of Kysely's Migrator, shared with release 0.1.0. */
export const LOCK_TABLE = 'kysely_migration_lock';
const COMPATIBILITY_TABLE = 'schema_compatibility';
const LEGACY_HISTORY_TABLE = 'kysely_migration';
/** Newest migration of release 0.1.0. */
const LAST_LEGACY_MIGRATION = '0080_organisation_log';

/** An applied migration. `oldestProgram`: oldest release that works after it; null: every release; undefined: not recorded. */
export interface AppliedMigration {
  readonly name: string;
  readonly oldestProgram: string | null | undefined;
}

interface HistoryRow {
  readonly name: string;
  readonly oldest_program: string | null;
  readonly kind: string | null;
}

/** Creates the history tables, and copies the history of release 0.1.0. Safe to repeat. The caller must hold the migration lock. */
export async function prepareHistory<T>(database: Kysely<T>): Promise<void> {
  const tables = await tableNames(database);
  if (![HISTORY_TABLE, COMPATIBILITY_TABLE, LEGACY_HISTORY_TABLE].every((name) => tables.has(name))) await createTables(database);
  const history = sql.table(HISTORY_TABLE);
  const first = sql.table(LEGACY_HISTORY_TABLE);
  const missing = sql<{ name: string }>`select name from ${first} where name not in (select name from ${history})`;
  if ((await missing.execute(database)).rows.length === 0) return;
  // Without `where true`, SQLite would parse `on conflict` as the condition of a join.
  await sql`insert into ${history} (name, timestamp) select name, timestamp from ${first} where true on conflict do nothing`.execute(
    database,
  );
}

/** Applied migrations, sorted by name. Changes nothing, and works without {@link prepareHistory}, too. */
export async function appliedMigrations<T>(database: Kysely<T>): Promise<AppliedMigration[]> {
  const tables = await tableNames(database);
  if (tables.has(HISTORY_TABLE) && tables.has(COMPATIBILITY_TABLE)) return readHistory(database);
  if (!tables.has(LEGACY_HISTORY_TABLE)) return [];
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(LEGACY_HISTORY_TABLE)} order by name`.execute(database);
  return rows.map(({ name }) => ({ name, oldestProgram: undefined }));
}

/** Like {@link appliedMigrations}, in one statement. Rejects if {@link prepareHistory} has never run on the database. */
export async function readHistory(database: QueryExecutorProvider): Promise<AppliedMigration[]> {
  const { rows } = await sql<HistoryRow>`
    select history.name, compatibility.oldest_program, compatibility.kind
    from ${sql.table(HISTORY_TABLE)} as history
    left join ${sql.table(COMPATIBILITY_TABLE)} as compatibility on compatibility.name = history.name
    order by history.name`.execute(database);
  return rows.map(({ name, oldest_program: oldest, kind }) => ({ name, oldestProgram: kind === null ? undefined : oldest }));
}

/** Records the compatibility of a migration in its transaction. Also adds the migration to the table of 0.1.0 if 0.1.0 must see it. */
export async function recordCompatibility(
  transaction: QueryExecutorProvider,
  name: string,
  description: MigrationDescription,
): Promise<void> {
  const { kind, oldestProgram } = description;
  await sql`insert into ${sql.table(COMPATIBILITY_TABLE)} (name, kind, oldest_program) values (${name}, ${kind}, ${oldestProgram})`.execute(
    transaction,
  );
  if (name > LAST_LEGACY_MIGRATION && oldestProgram === null) return;
  await sql`insert into ${sql.table(LEGACY_HISTORY_TABLE)} (name, timestamp) values (${name}, ${new Date().toISOString()})`.execute(
    transaction,
  );
}

async function createTables<T>(database: Kysely<T>): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    for (const table of [HISTORY_TABLE, LEGACY_HISTORY_TABLE]) {
      await transaction.schema
        .createTable(table)
        .ifNotExists()
        .addColumn('name', 'varchar(255)', (column) => column.notNull().primaryKey())
        .addColumn('timestamp', 'varchar(255)', (column) => column.notNull())
        .execute();
    }
    await transaction.schema
      .createTable(COMPATIBILITY_TABLE)
      .ifNotExists()
      .addColumn('name', 'text', (column) => column.notNull().primaryKey())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('oldest_program', 'text')
      .execute();
  });
}

async function tableNames<T>(database: Kysely<T>): Promise<ReadonlySet<string>> {
  // Kysely's introspection would also read the columns of every table.
  const query =
    dialectOf(database) === 'postgres'
      ? sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`
      : sql<{ name: string }>`select name from sqlite_master where type = 'table'`;
  const { rows } = await query.execute(database);
  return new Set(rows.map(({ name }) => name));
}

/** PostgreSQL schema of the tables; undefined on SQLite. Needed because a restore leaves the replaced tables in another schema. */
export async function currentSchema<T>(database: Kysely<T>): Promise<string | undefined> {
  if (dialectOf(database) !== 'postgres') return undefined;
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(database);
  return rows[0]?.schema;
}
