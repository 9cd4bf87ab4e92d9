/**
 * Both databases for tests: `describeDatabases` runs its body over a fresh SQLite file and over a fresh PostgreSQL database of this
 * test file. An unreachable PostgreSQL prints a visible notice, and fails in CI.
 */
import { describe, expect, it } from 'vitest';
import type { Ledger } from '../../src/billing/ledger/ledger.js';
import type { Dialect } from '../../src/database/connection/dialect.js';
import { checkLedger } from '../../src/database/ledger/check-ledger.js';
import type { Database } from '../../src/database/tables.js';
import { type Content, freshPostgres, freshSqlite, TEST_DATABASE_URL, type TestDatabase, whyUnreachable } from './fresh-database.js';

export { freshPostgres, freshSqlite, TEST_DATABASE_URL, type TestDatabase } from './fresh-database.js';

const unreachable: string | null = await whyUnreachable();

type Fresh = (content?: Content) => Promise<TestDatabase>;

/** Runs `body` per database. `fresh` creates a database; the body opens and removes it. */
export function describeDatabases(name: string, body: (fresh: Fresh, dialect: Dialect) => void): void {
  describe(`${name} (sqlite)`, () => body(freshSqlite, 'sqlite'));
  describePostgres(name, (fresh) => body(fresh, 'postgres'));
}

/** Runs `body` on PostgreSQL alone: what it tests needs several coordinators or a server. */
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

/** Closes a ledger and its database, whose sums must agree. */
export async function closeChecked(place: TestDatabase, database: Database, ledger: Ledger): Promise<void> {
  const { problems } = await checkLedger(database);
  await ledger.close();
  await database.destroy();
  await place.remove();
  expect(problems).toEqual([]);
}
