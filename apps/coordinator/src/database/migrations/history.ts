/**
 * History of the schema in the database: migrations that ran, and the programs that run with each.
 *
 * Release 0.1.0 refuses to start if `kysely_migration`, its own history, names a migration that it does not know. Newer programs
 * therefore keep their history elsewhere, and add to that table only what 0.1.0 knows or must refuse.
 */
import { type Kysely, type QueryExecutorProvider, sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';
import type { MigrationDescription } from './describe-migration.js';

/** Table of the migration library: names and times. */
export const HISTORY_TABLE = 'schema_migrations';
/** Lock of the migration library, shared with release 0.1.0. */
export const LOCK_TABLE = 'kysely_migration_lock';
const COMPATIBILITY_TABLE = 'schema_compatibility';
const FIRST_HISTORY_TABLE = 'kysely_migration';
/** Newest migration of release 0.1.0. */
const LAST_OF_FIRST_RELEASE = '0080_organisation_log';
/** Arbitrary: serialises the creation of the tables on PostgreSQL. */
const ADVISORY_LOCK = 7_204_518_363;

/** Migration that ran. `oldestProgram`: null if every program runs with it, undefined if the database does not say. */
export interface AppliedMigration {
  readonly name: string;
  readonly oldestProgram: string | null | undefined;
}

interface HistoryRow {
  readonly name: string;
  readonly oldest_program: string | null;
  readonly kind: string | null;
}

/** Creates the tables, and takes over the history of release 0.1.0. Does nothing if both is done. */
export async function prepareHistory<T>(database: Kysely<T>): Promise<void> {
  const tables = await tableNames(database);
  if (![HISTORY_TABLE, COMPATIBILITY_TABLE, FIRST_HISTORY_TABLE].every((name) => tables.has(name))) await createTables(database);
  const history = sql.table(HISTORY_TABLE);
  const first = sql.table(FIRST_HISTORY_TABLE);
  const missing = sql<{ name: string }>`select name from ${first} where name not in (select name from ${history})`;
  if ((await missing.execute(database)).rows.length === 0) return;
  await sql`insert into ${history} (name, timestamp) select name, timestamp from ${first} where true on conflict do nothing`.execute(
    database,
  );
}

/** Migrations that ran, in order of name, also before {@link prepareHistory}. Changes nothing. */
export async function appliedMigrations<T>(database: Kysely<T>): Promise<AppliedMigration[]> {
  const tables = await tableNames(database);
  if (tables.has(HISTORY_TABLE) && tables.has(COMPATIBILITY_TABLE)) return readHistory(database);
  if (!tables.has(FIRST_HISTORY_TABLE)) return [];
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(FIRST_HISTORY_TABLE)} order by name`.execute(database);
  return rows.map(({ name }) => ({ name, oldestProgram: undefined }));
}

/** Like {@link appliedMigrations}, in one statement. Rejects before {@link prepareHistory}. */
export async function readHistory(database: QueryExecutorProvider): Promise<AppliedMigration[]> {
  const { rows } = await sql<HistoryRow>`
    select history.name, compatibility.oldest_program, compatibility.kind
    from ${sql.table(HISTORY_TABLE)} as history
    left join ${sql.table(COMPATIBILITY_TABLE)} as compatibility on compatibility.name = history.name
    order by history.name`.execute(database);
  return rows.map(({ name, oldest_program: oldest, kind }) => ({ name, oldestProgram: kind === null ? undefined : oldest }));
}

/** Records a migration for older programs, in the transaction of the migration. */
export async function recordForOlderPrograms(
  transaction: QueryExecutorProvider,
  name: string,
  description: MigrationDescription,
): Promise<void> {
  const { kind, oldestProgram } = description;
  await sql`insert into ${sql.table(COMPATIBILITY_TABLE)} (name, kind, oldest_program) values (${name}, ${kind}, ${oldestProgram})`.execute(
    transaction,
  );
  if (name > LAST_OF_FIRST_RELEASE && oldestProgram === null) return;
  await sql`insert into ${sql.table(FIRST_HISTORY_TABLE)} (name, timestamp) values (${name}, ${new Date().toISOString()})`.execute(
    transaction,
  );
}

async function createTables<T>(database: Kysely<T>): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    if (dialectOf(transaction) === 'postgres') await sql`select pg_advisory_xact_lock(${sql.lit(ADVISORY_LOCK)})`.execute(transaction);
    for (const table of [HISTORY_TABLE, FIRST_HISTORY_TABLE]) {
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
  const tables = await database.introspection.getTables({ withInternalKyselyTables: true });
  return new Set(tables.map(({ name }) => name));
}
