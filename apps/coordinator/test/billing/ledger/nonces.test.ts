/** Nonces of sealed requests in the ledger: of two requests with the same nonce, only one reserves money, also across coordinators. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../../test/support/seeded-random.js';
import type { Ledger, Reservation } from '../../../src/billing/ledger/ledger.js';
import { type LedgerOptions, openLedger } from '../../../src/billing/ledger/sql-ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import type { SealedNonce } from '../../../src/database/sealed-nonce-repository.js';
import type { Database } from '../../../src/database/tables.js';
import { describeDatabases, describePostgres, type TestDatabase } from '../../support/databases.js';
import { faultyDatabase } from './faulty-database.js';
import { give, newJob, reservation, settlement, T0 } from './random-steps.js';

const SEED = 20_260_115;
const LIFETIME_MS = 600_000;
const BALANCE = 100_000;
/** Maximum cost of `reservation()`. */
const AMOUNT = 100;

let place: TestDatabase;
let database: Database;
let opened: Ledger[];

const open = async (over: Partial<LedgerOptions> = {}): Promise<Ledger> => {
  const options = { providerSharePercent: 90, ownMachinesFree: false, separateReservations: true, now: () => T0 };
  const onError = (error: unknown) => {
    throw error;
  };
  const ledger = await openLedger({ database, ...options, onError, ...over });
  opened.push(ledger);
  return ledger;
};

function nonceOf(digest: string, jobId = newJob()): SealedNonce {
  return { digest, jobId, lifetimeMs: LIFETIME_MS };
}

/** Reservation of a new job with this nonce. */
function sealed(digest: string, over: Partial<Reservation> = {}): Reservation & { readonly nonce: SealedNonce } {
  const job = reservation(over);
  return { ...job, nonce: nonceOf(digest, job.jobId) };
}

function kinds(outcomes: readonly { readonly kind: string }[]): string[] {
  return outcomes.map(({ kind }) => kind).sort();
}

async function stop(): Promise<void> {
  for (const ledger of opened) await ledger.close();
  const { problems } = await checkLedger(database);
  await database.destroy();
  await place.remove();
  expect(problems).toEqual([]);
}

describeDatabases('a nonce', (fresh) => {
  let ledger: Ledger;

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    opened = [];
    ledger = await open();
    await give(ledger, 'customer', BALANCE);
  });
  afterEach(stop);

  const nonces = async (): Promise<string[]> =>
    (await database.selectFrom('sealed_nonces').select('digest').execute()).map((row) => row.digest);

  it('lets one of several jobs reserve, and replays reserve nothing', async () => {
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => ledger.reserve(sealed('a'))));
    expect(kinds(outcomes)).toEqual(['replayed', 'replayed', 'replayed', 'reserved']);
    expect(await ledger.reserve(sealed('a'))).toEqual({ kind: 'replayed' });
    expect(await ledger.reserve(sealed('b'))).toMatchObject({ kind: 'reserved' });
    expect((await ledger.balance('customer')).reserved).toBe(2 * AMOUNT);
    expect(await database.selectFrom('jobs').select('job_id').execute()).toHaveLength(2);
  });

  it('stays taken once its job is released or settled', async () => {
    const [released, settled] = [sealed('a'), sealed('b')];
    for (const job of [released, settled]) await ledger.reserve(job);
    await ledger.release(released.jobId, T0);
    await ledger.settle(settlement(settled.jobId));
    for (const digest of ['a', 'b']) expect(await ledger.reserve(sealed(digest))).toEqual({ kind: 'replayed' });
    expect((await ledger.balance('customer')).reserved).toBe(0);
  });

  it('is of its job, which may be reserved again', async () => {
    const job = sealed('a');
    expect(kinds(await Promise.all([1, 2].map(() => ledger.reserve(job))))).toEqual(['reserved', 'reserved']);
    expect(await ledger.reserve(job)).toMatchObject({ kind: 'reserved' });
    expect((await ledger.balance('customer')).reserved).toBe(AMOUNT);
  });

  it.each<[string, Partial<Reservation>, string]>([
    ['the balance', { maxPromptTokens: BALANCE }, 'insufficient_balance'],
    ["the key's limit", { keySpendLimit: microUsd(10) }, 'key_limit_reached'],
  ])('is not taken where %s is too low', async (_what, over, kind) => {
    expect(await ledger.reserve(sealed('a', over))).toMatchObject({ kind });
    expect(await nonces()).toEqual([]);
    expect(await ledger.reserve(sealed('a'))).toMatchObject({ kind: 'reserved' });
    expect(await ledger.reserve(sealed('a', over))).toEqual({ kind: 'replayed' });
    expect(await nonces()).toEqual(['a']);
  });

  it('is taken without money for a free job, and not by any other job', async () => {
    const nonce = nonceOf('a');
    expect(await Promise.all([nonce, nonce, nonceOf('a')].map((one) => ledger.takeNonce(one)))).toEqual([true, true, false]);
    expect(await ledger.reserve(sealed('a'))).toEqual({ kind: 'replayed' });
  });

  it('is not taken by a job with an impossible cost', async () => {
    const impossible = sealed('a', { maxPromptTokens: Number.MAX_SAFE_INTEGER });
    await expect(ledger.reserve(impossible)).rejects.toMatchObject({ fault: 'invalid' });
    expect(await nonces()).toEqual([]);
  });

  it('of another job, or without a finite lifetime, is refused', async () => {
    const job = sealed('a');
    await expect(ledger.reserve({ ...job, nonce: nonceOf('a') })).rejects.toMatchObject({ fault: 'invalid' });
    await expect(ledger.takeNonce({ ...job.nonce, lifetimeMs: Number.NaN })).rejects.toMatchObject({ fault: 'invalid' });
  });

  it('survives outcomes that are lost before and after the commit', async () => {
    const { database: faulty, faults } = faultyDatabase(database, ['before', 'statement', 'within', 'after'], 3, seededRandom(SEED));
    const other = await open({ database: faulty, retryMs: 60_000, onError: () => undefined });
    const outcomes: Promise<unknown>[] = [];
    for (let index = 0; index < 60; index++) {
      const [first, second] = [sealed(`${index}`), sealed(`${index}`)];
      outcomes.push(Promise.all([other.reserve(first), other.reserve(second)]).then(kinds));
      if (index % 7 === 0) await Promise.all(outcomes);
    }
    expect(new Set((await Promise.all(outcomes)).map(String))).toEqual(new Set(['replayed,reserved']));
    expect((await ledger.balance('customer')).reserved).toBe(60 * AMOUNT);
    for (const count of Object.values(faults)) expect(count).toBeGreaterThan(0);
  });

  describe('of an account with a credit lease', () => {
    const leased = (): Promise<Ledger> => open({ leases: { minPerSecond: 1, lifetimeMs: 600_000, pauseMs: 0 } });

    /** Reserves until a job of the account comes from a lease, and therefore has no row. */
    async function untilLeased(busy: Ledger): Promise<void> {
      for (let number = 0; ; number++) {
        const job = sealed(`warm ${number}`);
        expect(await busy.reserve(job)).toMatchObject({ kind: 'reserved' });
        const row = await database.selectFrom('jobs').select('job_id').where('job_id', '=', job.jobId).executeTakeFirst();
        await busy.release(job.jobId, T0);
        if (row === undefined) return;
      }
    }

    it('lets one of several jobs run, and returns the reservations of replays to the lease', async () => {
      const busy = await leased();
      await untilLeased(busy);
      const { reserved: before } = await busy.balance('customer');
      const jobs = [1, 2, 3].map(() => sealed('a'));
      const outcomes = await Promise.all(jobs.map((job) => busy.reserve(job)));
      expect(kinds(outcomes)).toEqual(['replayed', 'replayed', 'reserved']);
      expect((await busy.balance('customer')).reserved).toBe(before + AMOUNT);
      const [job] = jobs.filter((_, index) => outcomes[index]?.kind === 'reserved') as [Reservation];
      expect(await busy.reserve(job)).toMatchObject({ kind: 'reserved' });
      expect(await busy.settle(settlement(job.jobId))).toMatchObject({ kind: 'settled' });
      expect(await busy.reserve(sealed('a'))).toEqual({ kind: 'replayed' });
      // The other coordinator has no lease.
      expect(await ledger.reserve(sealed('a'))).toEqual({ kind: 'replayed' });
      expect((await busy.balance('customer')).reserved).toBe(before);
    });

    it('leaves no reservation when the database fails', async () => {
      const busy = await leased();
      await untilLeased(busy);
      const { reserved: before } = await busy.balance('customer');
      await database.schema.alterTable('sealed_nonces').renameTo('hidden').execute();
      await expect(busy.reserve(sealed('a'))).rejects.toThrow();
      await database.schema.alterTable('hidden').renameTo('sealed_nonces').execute();
      expect((await busy.balance('customer')).reserved).toBe(before);
      expect(await busy.reserve(sealed('a'))).toMatchObject({ kind: 'reserved' });
    });
  });
});

describePostgres('one nonce at two coordinators', (fresh) => {
  let elsewhere: Database;

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    elsewhere = await place.open();
    opened = [];
  });
  afterEach(async () => {
    await stop();
    await elsewhere.destroy();
  });

  it('lets exactly one of them run, with and without leases', async () => {
    const first = await open({ leases: { minPerSecond: 1, lifetimeMs: 600_000, pauseMs: 0 } });
    const second = await open({ database: elsewhere });
    await give(first, 'customer', BALANCE);
    const digests = Array.from({ length: 40 }, (_, index) => `${index}`);
    const outcomes = await Promise.all([
      ...digests.map((digest) => first.reserve(sealed(digest))),
      ...digests.toReversed().map((digest) => second.reserve(sealed(digest))),
    ]);
    expect(kinds(outcomes)).toEqual([...digests.map(() => 'replayed'), ...digests.map(() => 'reserved')]);
    expect((await first.balance('customer')).reserved).toBe(digests.length * AMOUNT);
  });

  it('lets the other one run where the first has too little money', async () => {
    const [first, second] = [await open(), await open({ database: elsewhere })];
    await give(first, 'customer', BALANCE);
    const outcomes = await Promise.all([first.reserve(sealed('a', { maxPromptTokens: BALANCE })), second.reserve(sealed('a'))]);
    // The order determines which refusal the first reservation gets.
    expect(outcomes[1]).toMatchObject({ kind: 'reserved' });
    expect(['insufficient_balance', 'replayed']).toContain(outcomes[0]?.kind);
  });
});
