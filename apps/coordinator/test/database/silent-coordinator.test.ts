/** Several coordinators on one PostgreSQL: the server soon ends the locks of a stopped one, and key uses are written without deadlocks. */
import { Kysely, sql } from 'kysely';
import { expect, it } from 'vitest';
import { addKey, createAccount, newKeyText, recordKeyUse } from '../../src/database/accounts/api-key-repository.js';
import { postgresDialect } from '../../src/database/connection/postgres.js';
import type { Database, Tables } from '../../src/database/tables.js';
import { JOB_TIMINGS } from '../../src/inference/job-timings.js';
import { describePostgres } from '../support/databases.js';
import { until } from '../support/harness.js';

/** A promise and its resolver. */
function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

async function addKeys(database: Database, count: number): Promise<string[]> {
  const accountId = await createAccount(database, 'customer', Date.now());
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    ids.push(await addKey(database, { accountId, kind: 'api', text: newKeyText(), now: Date.now() }));
  }
  return ids.sort();
}

/** Locks the row of a key until `release` resolves. `locked` resolves when the lock is held. */
function lockKey(database: Database, id: string, release: Promise<void>) {
  const { open, opened } = gate();
  const ended = database.transaction().execute(async (transaction) => {
    await transaction.selectFrom('api_keys').selectAll().where('id', '=', id).forUpdate().execute();
    open();
    await release;
  });
  return { locked: opened, ended };
}

async function waitingForLocks(database: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(database);
  return rows[0]?.count ?? 0;
}

describePostgres('locks between coordinators', (fresh) => {
  it('a silent coordinator holds its locks for less time than a reservation waits', async () => {
    const place = await fresh();
    const silent = await place.open();
    if (!('url' in place.target)) throw new Error('not PostgreSQL');
    const other = new Kysely<Tables>({ dialect: postgresDialect({ url: place.target.url, statementTimeoutMs: JOB_TIMINGS.ledgerMs }) });
    const [id = ''] = await addKeys(silent, 1);
    const { open, opened } = gate();
    const { locked, ended } = lockKey(silent, id, opened);
    const outcome = ended.catch((error: unknown) => error);
    await locked;
    await recordKeyUse(other, new Map([[id, 7]]));
    open();
    expect(await outcome).toBeInstanceOf(Error);
    await Promise.all([silent.destroy(), other.destroy()]);
    await place.remove();
  });

  it('two coordinators write the uses of the same keys without a deadlock', async () => {
    const place = await fresh();
    const database = await place.open();
    const [first = '', last = '', middle = ''] = await addKeys(database, 3);
    const { open, opened } = gate();
    const { locked, ended } = lockKey(database, middle, opened);
    await locked;
    const uses = [
      [first, middle, last],
      [last, middle, first],
    ].map((ids) => recordKeyUse(database, new Map(ids.map((id) => [id, 7]))));
    const outcome = Promise.all(uses);
    await until(async () => (await waitingForLocks(database)) === 2);
    open();
    await ended;
    await outcome;
    await database.destroy();
    await place.remove();
  });
});
