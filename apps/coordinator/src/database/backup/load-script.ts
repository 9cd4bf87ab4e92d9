/** `loadScript`: SQL that a restore sends to `psql` around the output of `pg_restore`, so that everything is one transaction. */
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, type RawBuilder, sql } from 'kysely';
import { COORDINATOR_APPLICATION } from '../connection/postgres.js';
import { type RestoredRows, type RowStatement, restoredRowStatements } from './restored-rows.js';

/** Maximum wait for locks of other sessions. */
const LOCK_TIMEOUT = '10s';

export interface LoadScript {
  readonly before: string;
  readonly after: string;
}

interface LoadOptions {
  readonly schema: string;
  /** Existing tables, which are moved to the schema `aside`, so that nothing is lost. */
  readonly tables: readonly string[];
  readonly aside: string;
  readonly rows: RestoredRows;
}

/** `after` ends with the commit. The caller sends it only after `pg_restore` has succeeded; otherwise the server rolls back. */
export function loadScript({ schema, tables, aside, rows }: LoadOptions): LoadScript {
  const moves = tables.map((name) => sql`alter table ${sql.id(schema, name)} set schema ${sql.id(aside)}`);
  return {
    before: script([
      sql`begin`,
      sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`,
      refuseCoordinators(),
      ...(moves.length === 0 ? [] : [sql`create schema ${sql.id(aside)}`, ...moves]),
    ]),
    after: script([...restoredRowStatements(rows, schema).map((one) => ifPresent(schema, one)), refuseCoordinators(), sql`commit`]),
  };
}

/** Runs a statement only if its table exists, which an older dump may lack. PL/pgSQL plans only statements that run. */
function ifPresent(schema: string, { table, statement }: RowStatement): RawBuilder<unknown> {
  const name = `"${schema.replaceAll('"', '""')}"."${table}"`;
  return sql`do $restore$ begin
    if pg_catalog.to_regclass(${sql.lit(name)}) is not null then ${statement}; end if;
  end $restore$`;
}

/** Fails if a coordinator is connected to the database. */
function refuseCoordinators(): RawBuilder<unknown> {
  return sql`do $$ begin
    perform pg_catalog.pg_stat_clear_snapshot();
    if exists (select 1 from pg_catalog.pg_stat_activity
        where datname = pg_catalog.current_database() and application_name = ${sql.lit(COORDINATOR_APPLICATION)}) then
      raise exception 'a coordinator uses the database';
    end if;
  end $$`;
}

function script(statements: readonly RawBuilder<unknown>[]): string {
  return statements.map((statement) => `${statement.compile(compiler).sql};\n`).join('');
}

const compiler = new Kysely<Record<never, never>>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (database) => new PostgresIntrospector(database),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});
