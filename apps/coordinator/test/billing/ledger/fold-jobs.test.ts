/** Adding ended jobs to the roll-ups: exactly once, despite settlements, other folds, earlier versions, links and failures. */
import type { JobId, ProviderId } from '@inference/protocol';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Ledger } from '../../../src/billing/ledger/ledger.js';
import { readProviderEarnings } from '../../../src/database/earnings-repository.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { foldJobs } from '../../../src/database/ledger/fold-jobs.js';
import { ledgerSummary } from '../../../src/database/ledger/ledger-summary.js';
import { readNetworkTotals } from '../../../src/database/statistics-repository.js';
import type { Database } from '../../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';
import { give, openTestLedger, PROVIDER, reservation, settlement, T0 } from './random-steps.js';

function signal(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

const FEE = 3;
const EARNED = 27;

describeDatabases('folding settled jobs', (fresh, dialect) => {
  let place: TestDatabase;
  let database: Database;
  let other: Database;
  let ledger: Ledger;

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    other = await place.open();
    ledger = await openTestLedger(database, { separateReservations: true, onError: () => undefined });
    await give(ledger, 'customer', 1_000_000);
  });
  afterEach(async () => {
    await ledger.close();
    await foldJobs(database);
    const { problems } = await checkLedger(database);
    await other.destroy();
    await database.destroy();
    await place.remove();
    expect(problems).toEqual([]);
  });

  async function settle(providerId: ProviderId = PROVIDER): Promise<JobId> {
    const job = reservation();
    await ledger.reserve(job);
    expect(await ledger.settle(settlement(job.jobId, { providerId }))).toEqual({
      kind: 'settled',
      cost: FEE + EARNED,
      earned: EARNED,
      fee: FEE,
    });
    return job.jobId;
  }
  const storedFees = async (): Promise<number> =>
    (await database.selectFrom('balances').select('balance').where('account', '=', 'system:fees').executeTakeFirst())?.balance ?? 0;
  const queued = async (): Promise<number> => (await database.selectFrom('unfolded_jobs').select('job_id').execute()).length;

  it('leaves every check and every sum right at any moment', async () => {
    await settle();
    await foldJobs(database);
    await settle();
    const summary = await ledgerSummary(database);
    expect(summary).toMatchObject({ fees: 2 * FEE, problems: [] });
    const { problems, figures } = await checkLedger(database);
    expect({ problems, fees: figures.fees }).toEqual({ problems: [], fees: 2 * FEE });
    expect((await readNetworkTotals(database, 'all')).requests).toBe(2);
    expect(await queued()).toBe(0);
    expect(await storedFees()).toBe(2 * FEE);
  });

  it('counts each job once when many fold at once beside settlements', async () => {
    const settling = Promise.all(Array.from({ length: 60 }, () => settle()));
    let done = false;
    const folding = [database, other, database, other].map(async (one, index) => {
      while (!done) {
        await foldJobs(one, index % 2 === 0 ? 'skip' : 'wait');
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    await settling;
    done = true;
    await Promise.all(folding);
    expect((await readNetworkTotals(database, 'all')).requests).toBe(60);
    expect(await storedFees()).toBe(60 * FEE);
  });

  it('changes nothing when it fails in the middle', async () => {
    await settle();
    await database.schema.alterTable('machine_quarters').renameTo('away').execute();
    await expect(foldJobs(database)).rejects.toThrow(/machine_quarters/);
    expect([await queued(), await storedFees()]).toEqual([1, 0]);
    await database.schema.alterTable('away').renameTo('machine_quarters').execute();
    await foldJobs(database);
    expect([await queued(), await storedFees()]).toEqual([0, FEE]);
  });

  it('gives earnings of a provider that was linked before the fold to its owner', async () => {
    await settle();
    await ledger.linkProvider(PROVIDER, 'owner', T0);
    await settle();
    expect(await readProviderEarnings(database, PROVIDER, T0)).toEqual({ of: 'account', today: 2 * EARNED, total: 2 * EARNED });
  });

  it('names a queued job that is not settled', async () => {
    await database.insertInto('unfolded_jobs').values({ job_id: 'nothing' }).execute();
    expect((await checkLedger(database)).problems.join()).toContain('a job waits to be folded and is not settled');
    await database.deleteFrom('unfolded_jobs').execute();
  });

  if (dialect === 'postgres') {
    it('does not lose a job whose settlement commits after a later one was folded', async () => {
      const late = await settle();
      await database.deleteFrom('unfolded_jobs').execute();
      const commit = signal();
      const inserted = signal();
      const slow = other.transaction().execute(async (transaction) => {
        await transaction.insertInto('unfolded_jobs').values({ job_id: late }).execute();
        inserted.resolve();
        await commit.promise;
      });
      await inserted.promise;
      await settle();
      await foldJobs(database);
      expect(await storedFees()).toBe(FEE);
      commit.resolve();
      await slow;
      await foldJobs(database);
      expect(await storedFees()).toBe(2 * FEE);
    });

    it('leaves the shared rows unlocked while jobs settle', async () => {
      await settle();
      await foldJobs(database);
      await other.transaction().execute(async (holder) => {
        await sql`select hour from network_totals for update`.execute(holder);
        await sql`select balance from balances where account = 'system:fees' for update`.execute(holder);
        await settle();
      });
    });
  }
});
