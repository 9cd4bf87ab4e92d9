/**
 * `describeDatabases` runs tests on a fresh SQLite file and a fresh PostgreSQL database. Without
 * PostgreSQL, prints a visible notice, or fails in CI.
 */
import { describe, expect, it } from 'vitest';
import type { Ledger } from '../../src/billing/ledger/ledger.js';
import type { Dialect } from '../../src/database/connection/dialect.js';
import { checkLedger } from '../../src/database/ledger/check-ledger.js';
import type { Database } from '../../src/database/tables.js';
import { type Content, freshPostgres, freshSqlite, TEST_DATABASE_URL, type TestDatabase, whyUnreachable } from './fresh-database.js';
import { type Harness, type HarnessOptions, startHarness } from './harness.js';

export { freshPostgres, freshSqlite, TEST_DATABASE_URL, type TestDatabase } from './fresh-database.js';

const unreachable: string | null = await whyUnreachable();

type Fresh = (content?: Content) => Promise<TestDatabase>;

/** Runs `body` once per kind of database. `fresh` creates a database, which the body opens and removes. */
export function describeDatabases(name: string, body: (fresh: Fresh, dialect: Dialect) => void): void {
  describe(`${name} (sqlite)`, () => body(freshSqlite, 'sqlite'));
  describePostgres(name, (fresh) => body(fresh, 'postgres'));
}

/** Runs `body` on PostgreSQL only, for tests that need several coordinators or a database server. */
export function describePostgres(name: string, body: (fresh: Fresh) => void): void {
  describe(`${name} (postgres)`, () => {
    if (unreachable === null) {
      body(freshPostgres);
    } else {
      console.warn(`\n*** NOT TESTED on PostgreSQL: ${name}. No server at ${TEST_DATABASE_URL}: ${unreachable}\n`);
      it.runIf(process.env.CI !== undefined && process.env.CI !== '')('can be reached in CI', () => expect(unreachable).toBeNull());
      it.skipIf(process.env.CI !== undefined && process.env.CI !== '')(`is skipped, as no server answers: ${unreachable}`, () => {});
    }
  });
}

/** Starts a coordinator on a fresh database, which `close` removes. */
export async function startHarnessOn(fresh: Fresh, options: HarnessOptions = {}): Promise<Harness> {
  const place = await fresh();
  const harness = await startHarness({ ...options, config: { ...place.config, ...options.config } });
  const { close } = harness;
  harness.close = async () => {
    await close();
    await place.remove();
  };
  return harness;
}

/** Closes a ledger and its database; fails unless the ledger balances. */
export async function closeChecked(place: TestDatabase, database: Database, ledger: Ledger): Promise<void> {
  const { problems } = await checkLedger(database);
  await ledger.close();
  await database.destroy();
  await place.remove();
  expect(problems).toEqual([]);
}
