/** Credit leases of several ledgers on one PostgreSQL: recalls, expiry, and no false refusal under random interleavings. */
import type { JobId } from '@inference/protocol';
import { expect, it } from 'vitest';
import { seededRandom } from '../../../../../test/support/seeded-random.js';
import type { RecallHints } from '../../../src/billing/ledger/credit-recalls.js';
import type { Ledger, Reservation } from '../../../src/billing/ledger/ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import type { Database } from '../../../src/database/tables.js';
import { describePostgres, type TestDatabase } from '../../support/databases.js';
import { oneOf, upTo } from './random.js';
import { give, newJob, openTestLedger, PLAIN_PRICE, reservation, settlement, T0 } from './random-steps.js';

const BALANCE = 100_000;
/** An interval at which no renewal happens during a test. */
const NEVER_MS = 6_000_000;

/** Notifications between the ledgers of a test. */
class HintBus {
  readonly #listeners: ((accounts: ReadonlySet<string>) => void)[] = [];

  member(): RecallHints {
    let own: ((accounts: ReadonlySet<string>) => void) | null = null;
    return {
      publish: (account) => {
        for (const listener of this.#listeners) if (listener !== own) listener(new Set([account]));
      },
      on: (listener) => {
        own = listener;
        this.#listeners.push(listener);
      },
    };
  }
}

/** A reservation of exactly this amount. */
function reservationOf(amount: number): Reservation {
  const price = { ...PLAIN_PRICE, completionPerMillion: microUsd(0) };
  return reservation({ price, maxPromptTokens: amount, maxCompletionTokens: 0 });
}

describePostgres('recalled credit', (fresh) => {
  /** Runs a test on a new database, with ledgers that the test opens. */
  async function withLedgers(
    test: (open: (lifetimeMs: number, hints?: RecallHints) => Promise<Ledger>, database: Database, place: TestDatabase) => Promise<void>,
  ): Promise<void> {
    const place = await fresh();
    const database = await place.open();
    const ledgers: Ledger[] = [];
    const open = async (lifetimeMs: number, hints?: RecallHints): Promise<Ledger> => {
      const ledger = await openTestLedger(database, {
        separateReservations: true,
        // No pause: the first reservation is below a lease's minimum, which would otherwise block leases for five seconds.
        leases: { minPerSecond: 1, lifetimeMs, pauseMs: 0, ...(hints === undefined ? {} : { hints }) },
      });
      ledgers.push(ledger);
      return ledger;
    };
    try {
      const giver = await open(NEVER_MS);
      await give(giver, 'customer', BALANCE);
      try {
        await test(open, database, place);
      } finally {
        for (const ledger of ledgers) await ledger.close();
      }
      const leases = await database.selectFrom('credit_leases').selectAll().execute();
      expect({ leases, problems: (await checkLedger(database)).problems }).toEqual({ leases: [], problems: [] });
    } finally {
      await database.destroy();
      await place.remove();
    }
  }

  /** Reserves until the account has a lease, and returns a reservation from it. */
  async function leasedJob(ledger: Ledger, database: Database): Promise<Reservation> {
    for (;;) {
      const job = reservation();
      expect(await ledger.reserve(job)).toMatchObject({ kind: 'reserved' });
      if ((await database.selectFrom('jobs').select('job_id').where('job_id', '=', job.jobId).executeTakeFirst()) === undefined) return job;
      await ledger.release(job.jobId, T0);
    }
  }

  const leasedAmounts = async (database: Database): Promise<number[]> =>
    (await database.selectFrom('credit_leases').select('amount').execute()).map(({ amount }) => amount);

  it('returns unused money at once on a hint, but not the money of running jobs', () =>
    withLedgers(async (open, database) => {
      const bus = new HintBus();
      const near = await open(NEVER_MS, bus.member());
      const far = await open(NEVER_MS, bus.member());
      const running = await leasedJob(far, database);
      const all = BALANCE - 100;
      expect(await near.reserve(reservationOf(all + 1))).toMatchObject({ kind: 'insufficient_balance' });
      const whole = reservationOf(all);
      expect(await near.reserve(whole)).toEqual({ kind: 'reserved', amount: all });
      expect(await leasedAmounts(database)).toEqual([100]);
      expect(await far.settle(settlement(running.jobId))).toMatchObject({ kind: 'settled' });
      await near.release(whole.jobId, T0);
    }));

  it('returns at the next renewal without hints', () =>
    withLedgers(async (open, database) => {
      const near = await open(20_000);
      const far = await open(2000);
      const running = await leasedJob(far, database);
      const whole = reservationOf(BALANCE - 100);
      expect(await near.reserve(whole)).toMatchObject({ kind: 'reserved' });
      await Promise.all([near.release(whole.jobId, T0), far.release(running.jobId, T0)]);
    }));

  it('makes a refusal retryable, not final, while the other coordinator is silent', () =>
    withLedgers(async (open, database) => {
      const near = await open(1000);
      const far = await open(NEVER_MS);
      const running = await leasedJob(far, database);
      await expect(near.reserve(reservationOf(BALANCE - 100))).rejects.toMatchObject({ fault: 'unavailable' });
      // An amount above all leases together is refused without a recall.
      expect(await near.reserve(reservationOf(2 * BALANCE))).toMatchObject({ kind: 'insufficient_balance' });
      await far.release(running.jobId, T0);
    }));

  it('can be withdrawn, and counts as available before', () =>
    withLedgers(async (open, database) => {
      const bus = new HintBus();
      const near = await open(NEVER_MS, bus.member());
      const far = await open(NEVER_MS, bus.member());
      const job = await leasedJob(far, database);
      await far.release(job.jobId, T0);
      await database.updateTable('balances').set({ earned: BALANCE }).where('account', '=', 'customer').execute();
      expect(await near.balance('customer')).toMatchObject({ balance: BALANCE, withdrawable: BALANCE });
      const amount = microUsd(BALANCE);
      expect(await near.requestWithdrawal({ id: 'w', accountId: 'customer', amount, at: T0 })).toEqual({ kind: 'requested' });
      await near.endWithdrawal('w', 'rejected', T0);
      await database.updateTable('balances').set({ earned: 0 }).where('account', '=', 'customer').execute();
      await database.deleteFrom('postings').where('event', 'like', 'withdrawal:%').execute();
      await database.deleteFrom('withdrawals').execute();
    }));

  it('of a closing lease returns with each job', () =>
    withLedgers(async (open, database) => {
      const bus = new HintBus();
      const near = await open(NEVER_MS, bus.member());
      const far = await open(NEVER_MS, bus.member());
      const [one, two] = [await leasedJob(far, database), await leasedJob(far, database)];
      await near.reserve(reservationOf(BALANCE - 100));
      expect((await leasedAmounts(database)).reduce((sum, amount) => sum + amount, 0)).toBe(200);
      await far.settle(settlement(one.jobId));
      expect((await leasedAmounts(database)).reduce((sum, amount) => sum + amount, 0)).toBe(100);
      await far.settle(settlement(two.jobId));
      expect(await leasedAmounts(database)).not.toContain(30);
    }));

  it('waits for its holder after an outage of the database', () =>
    withLedgers(async (open, database) => {
      const holder = await open(NEVER_MS);
      const job = await leasedJob(holder, database);
      const clock = Date.now();
      await database
        .updateTable('credit_leases')
        .set({ expires_at: clock - 5000 })
        .execute();
      const other = await open(NEVER_MS);
      await other.sweep(new Set(), 0);
      expect(await leasedAmounts(database)).toHaveLength(1);
      expect(await holder.settle(settlement(job.jobId))).toMatchObject({ kind: 'settled' });
    }));

  it.each([1, 2, 3])('never exceeds the balance, and never refuses an affordable job (seed %i)', (seed) =>
    withLedgers(async (_open, database, place) => {
      const random = seededRandom(seed);
      const bus = new HintBus();
      const members: { ledger: Ledger; own: Database; holder: string; jobs: Map<string, Reservation> }[] = [];
      const holders = async (): Promise<string[]> =>
        (await database.selectFrom('ledger_holders').select('id').execute()).map(({ id }) => id);
      const join = async (): Promise<void> => {
        const known = new Set(await holders());
        const own = await place.open();
        const ledger = await openTestLedger(own, {
          separateReservations: true,
          leases: { minPerSecond: 2, lifetimeMs: NEVER_MS, pauseMs: 0, hints: bus.member() },
          retryMs: 0,
          onError: () => undefined,
        });
        const holder = (await holders()).find((id) => !known.has(id)) ?? '';
        members.push({ ledger, own, holder, jobs: new Map() });
      };
      await join();
      await join();
      let deposited = BALANCE;
      let spent = 0;
      const step = async ({ ledger, jobs }: (typeof members)[number]): Promise<void> => {
        const kind = random();
        const [id] = jobs.keys();
        if (kind < 0.6 || id === undefined) {
          const job = reservationOf(1 + upTo(random, oneOf(random, [50, 500, 20_000])));
          if ((await ledger.reserve(job)).kind === 'reserved') jobs.set(job.jobId, job);
          return;
        }
        const job = jobs.get(id) as Reservation;
        jobs.delete(id);
        if (kind < 0.7) await ledger.release(job.jobId, T0);
        else {
          const outcome = await ledger.settle(
            settlement(job.jobId, { promptTokens: upTo(random, job.maxPromptTokens), completionTokens: 0 }),
          );
          if (outcome.kind === 'settled') spent += outcome.cost;
        }
      };
      /** Sum of the maximum costs of running jobs. */
      const running = (): number =>
        members.flatMap(({ jobs }) => [...jobs.values()]).reduce((sum, { maxPromptTokens }) => sum + maxPromptTokens, 0);

      let leasedRounds = 0;
      for (let round = 0; round < 25; round++) {
        await Promise.all(Array.from({ length: 12 }, () => step(oneOf(random, members))));
        if ((await leasedAmounts(database)).length > 0) leasedRounds++;
        const event = random();
        if (event < 0.15) {
          // A paused process: its leases expire together with the jobs reserved from them, which then cost nothing.
          const [paused] = members.splice(upTo(random, 1), 1);
          if (paused === undefined) throw new Error('there are always two members');
          await database.updateTable('credit_leases').set({ expires_at: 0 }).where('holder', '=', paused.holder).execute();
          await members[0]?.ledger.sweep(new Set(), 0);
          const inRows = new Set(
            (await database.selectFrom('jobs').select('job_id').where('state', '=', 'reserved').execute()).map((row) => row.job_id),
          );
          for (const id of paused.jobs.keys()) {
            const outcome = await paused.ledger.settle(settlement(id as JobId, { promptTokens: 1, completionTokens: 0 }));
            expect(outcome.kind).toBe(inRows.has(id) ? 'settled' : 'released_before');
            if (outcome.kind === 'settled') spent += outcome.cost;
          }
          await paused.ledger.close();
          await paused.own.destroy();
          await join();
        } else if (event < 0.25) {
          // A crash: no further step of the process reaches the database.
          const [dead] = members.splice(upTo(random, 1), 1);
          await dead?.own.destroy();
          await database
            .updateTable('credit_leases')
            .set({ expires_at: 0 })
            .where('holder', '=', dead?.holder ?? '')
            .execute();
          await database
            .updateTable('ledger_holders')
            .set({ seen_at: 0 })
            .where('id', '=', dead?.holder ?? '')
            .execute();
          await join();
        } else if (event < 0.35) {
          deposited += 5000;
          await give(oneOf(random, members).ledger, 'customer', 5000);
        }
        expect((await checkLedger(database)).problems).toEqual([]);
        const available = deposited - spent - running();
        expect(available).toBeGreaterThanOrEqual(0);
        const { ledger } = oneOf(random, members);
        expect(await ledger.reserve(reservationOf(available + 1))).toMatchObject({ kind: 'insufficient_balance' });
        if (available === 0) continue;
        const probe = { ...reservationOf(available), jobId: newJob() };
        expect(await ledger.reserve(probe)).toEqual({ kind: 'reserved', amount: available });
        await ledger.release(probe.jobId, T0);
      }
      expect(leasedRounds).toBeGreaterThan(10);
      for (const { ledger, own, jobs } of members) {
        for (const id of jobs.keys()) await ledger.release(id as JobId, T0);
        jobs.clear();
        await ledger.close();
        await own.destroy();
      }
      const { reserved } = await database
        .selectFrom('balances')
        .select('reserved')
        .where('account', '=', 'customer')
        .executeTakeFirstOrThrow();
      expect(reserved).toBe(running());
    }),
  );
});
