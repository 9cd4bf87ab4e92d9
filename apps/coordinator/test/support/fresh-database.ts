/** Empty databases of both kinds, for tests and benches: a file in a fresh folder, or a separate PostgreSQL database. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Dialect } from '../../src/database/connection/dialect.js';
import { type DatabaseTarget, openDatabase } from '../../src/database/connection/open-database.js';
import type { Database } from '../../src/database/tables.js';

export interface TestDatabase {
  readonly dialect: Dialect;
  /** Location, for a second process or for environment variables. */
  readonly target: DatabaseTarget;
  /** Opens another connection; the caller destroys it. */
  open(): Promise<Database>;
  /** Removes the database with its content. Open connections are cut. */
  remove(): Promise<void>;
}

/** Server for test databases. */
export const TEST_DATABASE_URL = process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/test';
const NAME_PREFIX = 'inference_test_';
/** Age after which databases of killed test runs are removed, in milliseconds. */
const ABANDONED_MS = 3_600_000;

export async function freshSqlite(): Promise<TestDatabase> {
  const directory = mkdtempSync(join(tmpdir(), 'coordinator-database-'));
  const target = { file: join(directory, 'test.db') };
  return {
    dialect: 'sqlite',
    target,
    open: () => openDatabase(target),
    remove: async () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Emptied databases for reuse: creating and dropping is far slower than emptying. */
const spares: string[] = [];

/** Creates an empty PostgreSQL database. Rejects when the server is unreachable. */
export async function freshPostgres(): Promise<TestDatabase> {
  const name = spares.pop() ?? (await createOnServer());
  const url = new URL(TEST_DATABASE_URL);
  url.pathname = `/${name}`;
  const target = { url: url.href, maxConnections: 4 };
  return {
    dialect: 'postgres',
    target,
    open: () => openDatabase(target),
    remove: async () => {
      await onServer(async (client) => {
        await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()', [name]);
        await client.query('drop schema public cascade; create schema public');
      }, url.href);
      spares.push(name);
    },
  };
}

async function createOnServer(): Promise<string> {
  const name = `${NAME_PREFIX}${Date.now()}_${randomBytes(4).toString('hex')}`;
  await onServer(async (client) => {
    await removeAbandoned(client);
    await client.query(`create database ${name}`);
  });
  return name;
}

/** Drops the emptied databases. For the end of a test file or a bench. */
export async function dropSpares(): Promise<void> {
  const names = spares.splice(0);
  if (names.length === 0) return;
  await onServer(async (client) => {
    for (const name of names) await client.query(`drop database if exists ${name} with (force)`);
  });
}

async function removeAbandoned(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ datname: string }>('select datname from pg_database where datname like $1', [`${NAME_PREFIX}%`]);
  for (const { datname } of rows) {
    const made = Number(datname.slice(NAME_PREFIX.length).split('_')[0]);
    if (Date.now() - made > ABANDONED_MS) await client.query(`drop database if exists "${datname}" with (force)`);
  }
}

async function onServer(work: (client: pg.Client) => Promise<void>, url = TEST_DATABASE_URL): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

/** Reason why PostgreSQL is unreachable, or null. */
export async function whyUnreachable(): Promise<string | null> {
  try {
    await onServer(async () => {});
    return null;
  } catch (error) {
    return error instanceof Error && error.message !== '' ? error.message : String(error);
  }
}
