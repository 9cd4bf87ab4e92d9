/** Creates databases for tests and benches: SQLite files in new folders, and separate PostgreSQL databases. */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import type { Dialect } from '../../src/database/connection/dialect.js';
import { type DatabaseTarget, openDatabase } from '../../src/database/connection/open-database.js';
import type { Database } from '../../src/database/tables.js';
import { DATABASE_PARENT } from './database-directory.js';
import { type InitialState, readInitialState, restoreInitialState } from './initial-state.js';

export interface TestDatabase {
  readonly dialect: Dialect;
  /** Location, for a second process or for environment variables. */
  readonly target: DatabaseTarget;
  /** Database setting of a coordinator. */
  readonly config: { readonly databaseUrl?: string };
  /** Opens another connection, which the caller destroys. */
  open(): Promise<Database>;
  /** Removes the database and closes its connections. */
  remove(): Promise<void>;
}

/** `empty`: the first coordinator that opens the database runs the migrations. */
export type Content = 'migrated' | 'empty';

/** Server for test databases. */
export const TEST_DATABASE_URL = process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/test';
const NAME_PREFIX = 'inference_test_';
/** Age after which databases of killed test runs are removed, in milliseconds. */
const ABANDONED_MS = 3_600_000;

export async function freshSqlite(content: Content = 'migrated'): Promise<TestDatabase> {
  const directory = temporaryDirectory('coordinator-database', DATABASE_PARENT);
  const target = { file: join(directory, 'test.db') };
  if (content === 'migrated') writeFileSync(target.file, await migratedFile());
  return {
    dialect: 'sqlite',
    target,
    config: {},
    open: () => openDatabase(target),
    remove: async () => rmSync(directory, { recursive: true, force: true }),
  };
}

let migratedBytes: Promise<Uint8Array> | undefined;

/** Bytes of a database file after all migrations, made once per process. */
export function migratedFile(): Promise<Uint8Array> {
  migratedBytes ??= makeMigratedFile();
  return migratedBytes;
}

async function makeMigratedFile(): Promise<Uint8Array> {
  const directory = temporaryDirectory('coordinator-database', DATABASE_PARENT);
  try {
    const file = join(directory, 'test.db');
    await (await openDatabase({ file })).destroy();
    return readFileSync(file);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** PostgreSQL databases for reuse, because restoring is far faster than creating and migrating. */
const pooled: { readonly migrated: Migrated[]; readonly empty: string[] } = { migrated: [], empty: [] };

interface Migrated {
  readonly name: string;
  readonly initial: InitialState;
}

/** Creates a PostgreSQL database. Rejects when the server is unreachable. */
export async function freshPostgres(content: Content = 'migrated'): Promise<TestDatabase> {
  const migrated = content === 'migrated' ? (pooled.migrated.pop() ?? (await createMigrated())) : null;
  const name = migrated?.name ?? (await takeEmpty());
  const target = { url: urlOf(name), maxConnections: 4 };
  return {
    dialect: 'postgres',
    target,
    config: { databaseUrl: target.url },
    open: () => openDatabase(target),
    remove: () =>
      onServer(async (client) => {
        await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()', [name]);
        if (migrated !== null && (await restoreInitialState(client, migrated.initial))) {
          pooled.migrated.push(migrated);
        } else {
          await client.query(`alter database ${name} reset all`);
          await dropSchemas(client);
          pooled.empty.push(name);
        }
      }, target.url),
  };
}

/** Leaves an empty schema `public`. Tests of restores create other schemas. */
async function dropSchemas(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "select quote_ident(nspname) as name from pg_namespace where nspname <> 'information_schema' and nspname !~ '^pg_'",
  );
  for (const { name } of rows) await client.query(`drop schema ${name} cascade`);
  await client.query('create schema public');
}

async function createMigrated(): Promise<Migrated> {
  const name = await takeEmpty();
  const url = urlOf(name);
  await (await openDatabase({ url, maxConnections: 1 })).destroy();
  let initial: InitialState | undefined;
  await onServer(async (client) => {
    // No test crashes the server, so commits need not wait for the disk.
    await client.query(`alter database ${name} set synchronous_commit = off`);
    initial = await readInitialState(client);
  }, url);
  if (initial === undefined) throw new Error('the database was not read');
  return { name, initial };
}

async function takeEmpty(): Promise<string> {
  return pooled.empty.pop() ?? (await createOnServer());
}

function urlOf(name: string): string {
  const url = new URL(TEST_DATABASE_URL);
  url.pathname = `/${name}`;
  return url.href;
}

async function createOnServer(): Promise<string> {
  const name = `${NAME_PREFIX}${Date.now()}_${process.ppid}_${randomBytes(4).toString('hex')}`;
  await onServer(async (client) => {
    await removeAbandoned(client);
    await client.query(`create database ${name}`);
  });
  return name;
}

/** Drops the databases for reuse, at the end of a bench. Test runs use `dropDatabasesOfChildren`. */
export async function dropPooledDatabases(): Promise<void> {
  const names = [...pooled.migrated.splice(0).map(({ name }) => name), ...pooled.empty.splice(0)];
  if (names.length === 0) return;
  await onServer(async (client) => {
    for (const name of names) await client.query(`drop database if exists ${name} with (force)`);
  });
}

/** Drops the databases of all child processes, at the end of a test run. */
export async function dropDatabasesOfChildren(): Promise<void> {
  await onServer(async (client) => {
    const pattern = `${NAME_PREFIX}%\\_${process.pid}\\_%`;
    const { rows } = await client.query<{ datname: string }>('select datname from pg_database where datname like $1', [pattern]);
    for (const { datname } of rows) await client.query(`drop database if exists "${datname}" with (force)`);
  });
}

async function removeAbandoned(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ datname: string }>('select datname from pg_database where datname like $1', [`${NAME_PREFIX}%`]);
  for (const { datname } of rows) {
    const made = Number(datname.slice(NAME_PREFIX.length).split('_')[0]);
    if (Date.now() - made > ABANDONED_MS) await client.query(`drop database if exists "${datname}" with (force)`);
  }
}

/** Runs `work` on a new connection to the server, and closes the connection. */
export async function onServer(work: (client: pg.Client) => Promise<void>, url = TEST_DATABASE_URL): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

export async function whyUnreachable(): Promise<string | null> {
  try {
    await onServer(async () => {});
    return null;
  } catch (error) {
    return error instanceof Error && error.message !== '' ? error.message : String(error);
  }
}
