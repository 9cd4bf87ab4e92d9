/** Each migration affects older versions as its description says, and a version runs only with schemas that support it. */
import { Kysely, type Migration, Migrator, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { databaseState } from '../../src/database/connection/database-state.js';
import { openDatabase } from '../../src/database/connection/open-database.js';
import { postgresDialect } from '../../src/database/connection/postgres.js';
import { sqliteDialect } from '../../src/database/connection/sqlite.js';
import { MIGRATIONS } from '../../src/database/migrations/all.js';
import { describeMigration, type MigrationDescription } from '../../src/database/migrations/describe-migration.js';
import { runMigrations } from '../../src/database/migrations/run-migrations.js';
import { readSchemaState, thisProgram } from '../../src/database/migrations/schema-state.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases } from '../support/databases.js';
import { freshPostgres, onServer } from '../support/fresh-database.js';
import { until } from '../support/harness.js';
import { EXPAND, FUTURE_MIGRATION, newerProgram } from '../support/newer-program.js';
import { addRows, changesOf, readSchema } from '../support/schema-changes.js';

/** Runs migrations one by one on an empty file, and reports how each differs from its description. */
async function misdescribed(
  migrations: Readonly<Record<string, Migration>>,
  describe: (name: string) => MigrationDescription,
): Promise<string[]> {
  const statements: string[] = [];
  const database = new Kysely<unknown>({
    dialect: sqliteDialect(`${temporaryDirectory('migrations')}/test.db`),
    log: (event) => void statements.push(event.query.sql),
  });
  const problems: string[] = [];
  try {
    for (const [name, migration] of Object.entries(migrations)) {
      const before = await readSchema(database);
      await addRows(database, before);
      statements.length = 0;
      await migration.up(database);
      const ran = statements.splice(0);
      const { added, breaking } = changesOf(before, await readSchema(database), ran);
      const { kind } = describe(name);
      const found = breaking.length > 0 ? 'contract' : added.writesRows ? 'data' : 'expand';
      // `contract` is accepted without a visible change, because a migration may change the meaning of values.
      if (found !== kind && kind !== 'contract') problems.push(`${name} is ${kind}, but: ${[found, ...breaking].join('; ')}`);
    }
    return problems;
  } finally {
    await database.destroy();
  }
}

describe('descriptions of migrations', () => {
  it('state the effect of each migration on the schema', async () => {
    expect(await misdescribed(MIGRATIONS, describeMigration)).toEqual([]);
  });

  it('are refused if a migration breaks older programs', async () => {
    const one = (up: Migration['up']): Record<string, Migration> => ({
      '0001_accounts_and_keys': MIGRATIONS['0001_accounts_and_keys'],
      x: { up },
    });
    const reasonOf = async (statement: string): Promise<string> => {
      const migrations = one(async (database) => void (await sql.raw(statement).execute(database)));
      return (await misdescribed(migrations, () => EXPAND)).join();
    };
    expect(await reasonOf('create table more (id text primary key)')).toBe('');
    expect(await reasonOf('alter table accounts add column note text')).toBe('');
    expect(await reasonOf("alter table accounts add column note text not null default ''")).toBe('');
    expect(await reasonOf('drop table api_keys')).toMatch(/contract; table api_keys is gone/);
    expect(await reasonOf('alter table accounts drop column name')).toMatch(/contract; column accounts.name is gone/);
    expect(await reasonOf('alter table accounts rename column name to title')).toMatch(/contract; column accounts.name is gone/);
    expect(await reasonOf('create unique index one_name on accounts (name)')).toMatch(/contract; unique index one_name on accounts/);
    expect(await reasonOf('create trigger watch after insert on accounts begin select 1; end')).toMatch(/contract; trigger watch/);
    expect(await reasonOf("update accounts set name = ''")).toMatch(/contract; writes accounts, which older programs use/);
    expect(await reasonOf('delete from accounts')).toMatch(/contract; writes accounts, which older programs use/);
    expect(await reasonOf("insert into accounts (id, name, created_at) values ('a', '', 1)")).toMatch(/contract; writes accounts/);
  });

  it('are unknown for other names', () => {
    expect(() => describeMigration(FUTURE_MIGRATION)).toThrow(`no migration ${FUTURE_MIGRATION}`);
    expect(() => describeMigration('toString')).toThrow();
  });
});

const CONTRACT: MigrationDescription = { kind: 'contract', effect: 'drops a column', oldestProgram: '90.2.0' };
/** What release 0.1.0 reads: every name must be one of its own. */
const FIRST_HISTORY = sql<{ name: string }>`select name from kysely_migration order by name`;

describeDatabases('an older program', (fresh) => {
  it('starts on the expanded schema of a newer one, and the newer one again', async () => {
    const place = await fresh();
    const database = await place.open();
    expect(await runMigrations(database, newerProgram('90.2.0'))).toEqual([FUTURE_MIGRATION]);
    expect(await readSchemaState(database)).toEqual({
      applied: [...Object.keys(MIGRATIONS), FUTURE_MIGRATION],
      pending: [],
      unknown: [FUTURE_MIGRATION],
      refusal: null,
    });
    expect(await databaseState(database, 10_000)).toBe('ok');
    await (await openDatabase(place.target)).destroy();
    expect(await runMigrations(database, newerProgram('90.2.0'))).toEqual([]);
    // Release 0.1.0 finds the history that it knows.
    expect((await FIRST_HISTORY.execute(database)).rows.map(({ name }) => name)).not.toContain(FUTURE_MIGRATION);
    await database.destroy();
    await place.remove();
  });

  it('refuses a contracted schema, with the version that it needs', async () => {
    const place = await fresh();
    const database = await place.open();
    await runMigrations(database, newerProgram('90.2.0', CONTRACT));
    const { version } = thisProgram();
    await expect(openDatabase(place.target)).rejects.toThrow(
      `The database is too new: since migration 9999_from_the_future it needs coordinator 90.2.0 or newer, and this is ${version}.`,
    );
    expect(await databaseState(database, 10_000)).toBe('too_new');
    // Release 0.1.0 refuses names that it does not know.
    expect((await FIRST_HISTORY.execute(database)).rows.map(({ name }) => name)).toContain(FUTURE_MIGRATION);
    expect(await runMigrations(database, { ...thisProgram(), version: '90.2.0' })).toEqual([]);
    await database.destroy();
    await place.remove();
  });

  it('leaves nothing of a failed migration', async () => {
    const place = await fresh();
    const database = await place.open();
    const program = newerProgram('90.2.0');
    const failing: Migration = {
      async up(transaction) {
        await transaction.schema.createTable('half').addColumn('id', 'text').execute();
        await sql`select * from nowhere`.execute(transaction);
      },
    };
    await expect(
      runMigrations(database, { ...program, migrations: { ...program.migrations, [FUTURE_MIGRATION]: failing } }),
    ).rejects.toThrow('migration 9999_from_the_future failed');
    expect((await readSchemaState(database)).unknown).toEqual([]);
    await expect(sql`select * from half`.execute(database)).rejects.toThrow(/half/);
    await database.destroy();
    await place.remove();
  });

  it('takes over the history of release 0.1.0, and plans without writing', async () => {
    const place = await fresh();
    const database = await place.open();
    const names = Object.keys(MIGRATIONS);
    const last = names.at(-1) as string;
    // As release 0.1.0 leaves a database: with its own table only.
    await sql`delete from kysely_migration where name > '0080_organisation_log'`.execute(database);
    await sql`drop table schema_migrations`.execute(database);
    await sql`drop table schema_compatibility`.execute(database);
    expect(await databaseState(database, 10_000)).toBe('migrations_missing');
    const { applied, pending, unknown } = await readSchemaState(database);
    expect(applied.at(-1)).toBe('0080_organisation_log');
    expect([...applied, ...pending].at(-1)).toBe(last);
    expect(unknown).toEqual([]);
    await expect(sql`select * from schema_migrations`.execute(database)).rejects.toThrow(/schema_migrations/);
    await database.destroy();
    await place.remove();
  });
});

it('lets release 0.1.0 and two programs of this version start on an empty database at once', async () => {
  const place = await freshPostgres('empty');
  const url = 'url' in place.target ? place.target.url : '';
  const first = new Kysely<unknown>({ dialect: postgresDialect({ url, maxConnections: 2 }) });
  const waiting = sql<{ count: number }>`select count(*)::int as count from pg_locks join pg_database on pg_database.oid = database
    where datname = current_database() and locktype = 'advisory' and not granted`;
  try {
    let opening: Promise<readonly Database[]> | undefined;
    const legacy = Object.entries(MIGRATIONS).filter(([name]) => name <= '0080_organisation_log');
    const [[name, { up }] = ['', { up: async () => {} }], ...others] = legacy;
    // The two reach the lock while release 0.1.0 migrates under it.
    const slow: Migration = {
      async up(transaction) {
        opening = Promise.all([place.open(), place.open()]);
        opening.catch(() => {});
        await until(async () => (await waiting.execute(first)).rows[0]?.count === 2);
        await up(transaction);
      },
    };
    const provider = { getMigrations: async () => Object.fromEntries([[name, slow], ...others]) };
    expect((await new Migrator({ db: first, provider }).migrateToLatest()).error).toBeUndefined();
    for (const database of (await opening) ?? []) {
      expect((await readSchemaState(database)).pending).toEqual([]);
      await database.destroy();
    }
  } finally {
    await first.destroy();
    await place.remove();
  }
});

it('ignores the tables that a restore moved into another schema', async () => {
  const place = await freshPostgres('empty');
  try {
    await onServer(
      async (client) => {
        await client.query('create schema before_restore_1');
        for (const table of ['kysely_migration', 'kysely_migration_lock', 'schema_migrations', 'schema_compatibility']) {
          await client.query(`create table before_restore_1.${table} (name text)`);
        }
      },
      'url' in place.target ? place.target.url : undefined,
    );
    const database = await place.open();
    expect(await databaseState(database, 10_000)).toBe('ok');
    await database.destroy();
  } finally {
    await place.remove();
  }
});
