/** Credit leases: reservations from memory that never exceed the balance, even when processes are killed. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { program } from '../../../../../test/support/program.js';
import type { Ledger, Reservation } from '../../../src/billing/ledger/ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { ledgerSummary } from '../../../src/database/ledger/ledger-summary.js';
import type { Database } from '../../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';
import { give, openTestLedger, reservation, settlement, T0 } from './random-steps.js';

const BALANCE = 100_000;
/** Cost of `reservation()` with `settlement()`. */
const COST = 30;

describeDatabases('credit leases', (fresh, dialect) => {
  let place: TestDatabase;
  let database: Database;
  let ledger: Ledger;

  const open = (now = T0): Promise<Ledger> =>
    openTestLedger(database, {
      // No pause: the first reservation is below a lease's minimum, which would otherwise block leases for five seconds.
      leases: { minPerSecond: 1, lifetimeMs: 600_000, pauseMs: 0 },
      now: () => now,
    });
  const leases = () => database.selectFrom('credit_leases').selectAll().execute();
  const jobCount = async (): Promise<number> => (await database.selectFrom('jobs').select('job_id').execute()).length;
  const stored = () => database.selectFrom('balances').selectAll().where('account', '=', 'customer').executeTakeFirstOrThrow();

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    ledger = await open();
    await give(ledger, 'customer', BALANCE);
  });
  afterEach(async () => {
    await ledger.close();
    const left = await leases();
    const { problems } = await checkLedger(database);
    await database.destroy();
    await place.remove();
    expect({ left, problems }).toEqual({ left: [], problems: [] });
  });

  /** Reserves until the account has a lease, and returns a reservation from this lease. */
  async function leasedJob(): Promise<Reservation> {
    for (;;) {
      const job = reservation();
      expect(await ledger.reserve(job)).toMatchObject({ kind: 'reserved' });
      const row = await database.selectFrom('jobs').select('job_id').where('job_id', '=', job.jobId).executeTakeFirst();
      if (row === undefined) return job;
      await ledger.release(job.jobId, T0);
    }
  }

  it('are given to busy accounts, and jobs then have a row only once settled', async () => {
    const job = await leasedJob();
    const [before] = await leases();
    const amount = before?.amount ?? 0;
    expect(amount).toBeLessThanOrEqual(BALANCE / 8);
    expect((await stored()).reserved).toBe(amount);
    const { reserved } = await ledger.balance('customer');
    const count = await jobCount();
    expect(await ledger.settle(settlement(job.jobId))).toEqual({ kind: 'settled', cost: COST, earned: 27, fee: 3 });
    expect(await ledger.settle(settlement(job.jobId))).toEqual({ kind: 'already_settled', cost: COST });
    expect(await jobCount()).toBe(count + 1);
    expect((await leases()).map((lease) => lease.amount)).toEqual([amount - COST]);
    expect(await ledger.balance('customer')).toMatchObject({ balance: BALANCE - COST, reserved: 0 });
    expect(reserved).toBeGreaterThanOrEqual(COST);
    expect((await ledgerSummary(database)).problems).toEqual([]);
    expect((await checkLedger(database)).problems).toEqual([]);
  });

  it('take back the reservation of a released job, without a row', async () => {
    const job = await leasedJob();
    const count = await jobCount();
    expect(await ledger.reserve(job)).toMatchObject({ kind: 'reserved' });
    expect(await ledger.release(job.jobId, T0)).toBe(true);
    expect(await ledger.release(job.jobId, T0)).toBe(false);
    expect(await jobCount()).toBe(count);
    expect((await ledger.balance('customer')).reserved).toBe(0);
  });

  it('are released once after their expiry, and their jobs then cost nothing', async () => {
    const job = await leasedJob();
    await database.updateTable('credit_leases').set({ expires_at: 0 }).execute();
    const other = await open();
    await Promise.all([other.sweep(new Set(), 0), other.sweep(new Set(), 0), ledger.sweep(new Set(), 0)]);
    expect((await stored()).reserved).toBe(0);
    expect(await ledger.settle(settlement(job.jobId))).toEqual({ kind: 'released_before' });
    expect(await ledger.release(job.jobId, T0)).toBe(false);
    expect(await stored()).toMatchObject({ balance: BALANCE, reserved: 0 });
    await other.close();
  });

  it('release jobs that no longer run', async () => {
    const job = await leasedJob();
    expect(await ledger.sweep(new Set([job.jobId]), T0 + 1)).toBe(0);
    expect(await ledger.sweep(new Set(), T0 + 1)).toBe(1);
    expect(await ledger.settle(settlement(job.jobId))).toEqual({ kind: 'unknown_job' });
  });

  it('give unused money back to a reservation that needs it', async () => {
    const job = await leasedJob();
    await ledger.release(job.jobId, T0);
    const left = (await stored()).balance;
    const whole = reservation({
      price: { ...job.price, promptPerMillion: microUsd(1_000_000), completionPerMillion: microUsd(0) },
      maxPromptTokens: left,
    });
    expect(await ledger.reserve(whole)).toEqual({ kind: 'reserved', amount: left });
    expect(await leases()).toEqual([]);
    await ledger.release(whole.jobId, T0);
  });

  it('leave keys with a spend limit to rows', async () => {
    await leasedJob();
    const limited = reservation({ keySpendLimit: microUsd(1_000_000) });
    await ledger.reserve(limited);
    expect(await database.selectFrom('jobs').select('state').where('job_id', '=', limited.jobId).executeTakeFirst()).toEqual({
      state: 'reserved',
    });
    await ledger.release(limited.jobId, T0);
  });

  if (dialect === 'postgres') {
    it('and reservations of three processes never exceed the balance, with kills', async () => {
      const settled = new Map<string, number>();
      const start = async (seed: number): Promise<ChildProcess> => {
        const child = fork(
          await program('apps/coordinator/test/billing/ledger/lease-process.ts'),
          [JSON.stringify(place.target), String(seed)],
          { execArgv: [] },
        );
        child.on('message', ({ settled: id, kind, cost }: { settled: string; kind: string; cost: number }) => {
          if (kind === 'settled') settled.set(id, cost);
        });
        return child;
      };
      const settledMore = (count: number): Promise<unknown> => {
        const target = settled.size + count;
        return vi.waitFor(() => expect(settled.size).toBeGreaterThanOrEqual(target), { timeout: 60_000, interval: 20 });
      };
      const children = await Promise.all([1, 2, 3].map(start));
      // Each of the three first processes is killed once.
      for (let round = 0; round < 3; round++) {
        await settledMore(80);
        expect((await checkLedger(database)).problems).toEqual([]);
        const child = children.shift();
        child?.kill('SIGKILL');
        if (child !== undefined) await once(child, 'close');
        expect((await checkLedger(database)).problems).toEqual([]);
        children.push(await start(10 + round));
        await give(ledger, 'customer', 10_000);
      }
      expect((await sql`select 1 from credit_leases`.execute(database)).rows.length).toBeGreaterThan(0);
      for (const child of children) {
        child.kill('SIGKILL');
        await once(child, 'close');
      }
      await database.updateTable('credit_leases').set({ expires_at: 0 }).execute();
      // By the database's clock, the killed processes have been silent for long.
      await database.updateTable('ledger_holders').set({ seen_at: 0 }).execute();
      await ledger.close();
      ledger = await open(T0 + 3_600_000);
      expect((await stored()).reserved).toBe(0);
      const rows = await database.selectFrom('jobs').select(['job_id', 'cost']).where('state', '=', 'settled').execute();
      const costs = new Map(rows.map((row) => [row.job_id, row.cost]));
      for (const [id, cost] of settled) expect(costs.get(id)).toBe(cost);
      expect((await stored()).balance).toBe(BALANCE + 30_000 - rows.reduce((sum, { cost }) => sum + cost, 0));
    }, 180_000);
  }
});
