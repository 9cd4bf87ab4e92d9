/** Effects and outcomes of each ledger step, on both databases. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Ledger } from '../../../src/billing/ledger/ledger.js';
import { LedgerError } from '../../../src/billing/ledger/ledger-error.js';
import type { LedgerOptions } from '../../../src/billing/ledger/sql-ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { foldJobs } from '../../../src/database/ledger/fold-jobs.js';
import { dayOf } from '../../../src/database/ledger/key-budget.js';
import type { Database } from '../../../src/database/tables.js';
import { closeChecked, describeDatabases, type TestDatabase } from '../../support/databases.js';
import { give, newJob, openTestLedger, PLAIN_PRICE, PROVIDER, reservation, settlement, T0 } from './random-steps.js';

describeDatabases('the ledger', (fresh, dialect) => {
  let place: TestDatabase;
  let database: Database;
  let ledger: Ledger;

  const open = (over: Partial<LedgerOptions> = {}): Promise<Ledger> => openTestLedger(database, over);

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    ledger = await open();
  });
  afterEach(() => closeChecked(place, database, ledger));

  describe('a job', () => {
    it('reserves its maximum cost, is charged its usage, and shares the cost', async () => {
      await give(ledger, 'customer', 1000);
      const job = reservation();
      expect(await ledger.reserve(job)).toEqual({ kind: 'reserved', amount: 100 });
      expect(await ledger.balance('customer')).toEqual({ balance: 1000, reserved: 100, withdrawable: 0 });
      expect(await ledger.settle(settlement(job.jobId))).toEqual({ kind: 'settled', cost: 30, earned: 27, fee: 3 });
      expect(await ledger.balance('customer')).toEqual({ balance: 970, reserved: 0, withdrawable: 0 });
      expect(await ledger.balance(`provider:${PROVIDER}`)).toEqual({ balance: 27, reserved: 0, withdrawable: 27 });
      const rows = await database.selectFrom('jobs').selectAll().execute();
      expect(rows).toMatchObject([
        { job_id: job.jobId, state: 'settled', prompt_tokens: 10, completion_tokens: 20, hidden_tokens: 5, cost: 30, ended_at: T0 },
      ]);
    });

    it('can be reserved, settled and released any number of times, and counts once', async () => {
      await give(ledger, 'customer', 1000);
      const job = reservation();
      const reserved = await Promise.all([1, 2, 3].map(() => ledger.reserve(job)));
      expect(reserved).toEqual([1, 2, 3].map(() => ({ kind: 'reserved', amount: 100 })));
      const settled = await Promise.all([1, 2, 3].map(() => ledger.settle(settlement(job.jobId))));
      expect(settled.map((outcome) => outcome.kind)).toEqual(['settled', 'already_settled', 'already_settled']);
      expect(await ledger.settle(settlement(job.jobId, { completionTokens: 50 }))).toEqual({ kind: 'already_settled', cost: 30 });
      expect(await ledger.release(job.jobId, T0)).toBe(false);
      await expect(ledger.reserve(job)).rejects.toMatchObject({ fault: 'job_taken' });
      expect((await ledger.balance('customer')).balance).toBe(970);
    });

    it('costs nothing after a release, and cannot be settled then', async () => {
      await give(ledger, 'customer', 1000);
      const job = reservation();
      await ledger.reserve(job);
      expect(await Promise.all([ledger.release(job.jobId, T0), ledger.release(job.jobId, T0)])).toEqual([true, false]);
      expect(await ledger.settle(settlement(job.jobId))).toEqual({ kind: 'released_before' });
      expect(await ledger.settle(settlement(newJob()))).toEqual({ kind: 'unknown_job' });
      expect(await ledger.balance('customer')).toEqual({ balance: 1000, reserved: 0, withdrawable: 0 });
    });

    it('is never charged more than its reservation', async () => {
      await give(ledger, 'customer', 1000);
      const job = reservation();
      await ledger.reserve(job);
      const huge = { promptTokens: Number.MAX_SAFE_INTEGER, completionTokens: Number.MAX_SAFE_INTEGER, images: 5 };
      expect(await ledger.settle(settlement(job.jobId, huge))).toMatchObject({ cost: 100, earned: 90, fee: 10 });
      const rows = await database.selectFrom('jobs').select(['prompt_tokens', 'completion_tokens', 'images']).execute();
      expect(rows).toEqual([{ prompt_tokens: 40, completion_tokens: 60, images: 0 }]);
    });

    it('settles at the price of its reservation, which its row stores', async () => {
      await give(ledger, 'customer', 1000);
      const cheap = reservation({ price: { ...PLAIN_PRICE, id: 'cheap', completionPerMillion: microUsd(1) } });
      await ledger.reserve(cheap);
      expect(await ledger.settle(settlement(cheap.jobId))).toMatchObject({ kind: 'settled', cost: 11 });
      expect(await database.selectFrom('jobs').select(['price_id', 'completion_per_million']).execute()).toEqual([
        { price_id: 'cheap', completion_per_million: 1 },
      ]);
    });

    it('charges cached prompt tokens at their own rate, which its row stores', async () => {
      await give(ledger, 'customer', 1000);
      const job = reservation({ price: { ...PLAIN_PRICE, cachedPerMillion: microUsd(100_000) } });
      expect(await ledger.reserve(job)).toEqual({ kind: 'reserved', amount: 100 });
      // 3 tokens at a micro-USD, 7 at a tenth, rounded up together, and 20 completion tokens.
      expect(await ledger.settle(settlement(job.jobId, { cachedTokens: 7 }))).toMatchObject({ cost: 24 });
      expect(await database.selectFrom('jobs').select(['cached_per_million', 'cached_tokens', 'cost']).execute()).toEqual([
        { cached_per_million: 100_000, cached_tokens: 7, cost: 24 },
      ]);
      const more = reservation({ price: { ...PLAIN_PRICE, cachedPerMillion: microUsd(100_000) } });
      await ledger.reserve(more);
      // Cached tokens above the prompt tokens are limited to the prompt.
      expect(await ledger.settle(settlement(more.jobId, { cachedTokens: 11, completionTokens: 0 }))).toMatchObject({ cost: 1 });
      const dear = reservation({ price: { ...PLAIN_PRICE, cachedPerMillion: microUsd(1_000_001) } });
      await expect(ledger.reserve(dear)).rejects.toMatchObject({ fault: 'invalid' });
      expect((await checkLedger(database)).problems).toEqual([]);
    });

    it('is charged at the price of the model that answered, within the reserved amount', async () => {
      await give(ledger, 'customer', 1000);
      const price = { ...PLAIN_PRICE, id: 'fallback', model: 'other', promptPerMillion: microUsd(2_000_000) };
      const job = reservation();
      await ledger.reserve(job);
      expect(await ledger.settle(settlement(job.jobId, { served: { model: 'other', price } }))).toMatchObject({
        kind: 'settled',
        cost: 40,
      });
      const dear = reservation();
      await ledger.reserve(dear);
      const dearPrice = { ...price, completionPerMillion: microUsd(90_000_000) };
      expect(await ledger.settle(settlement(dear.jobId, { served: { model: 'other', price: dearPrice } }))).toMatchObject({ cost: 100 });
      const columns = ['model', 'price_id', 'prompt_per_million', 'amount', 'cost'] as const;
      const rows = await database.selectFrom('jobs').select(columns).orderBy('cost').execute();
      expect(rows).toEqual(
        [40, 100].map((cost) => ({ model: 'other', price_id: 'fallback', prompt_per_million: 2_000_000, amount: 100, cost })),
      );
      expect(await ledger.balance('customer')).toMatchObject({ balance: 860, reserved: 0 });
      expect((await checkLedger(database)).problems).toEqual([]);
    });

    it('is free on an own provider with that setting, and stays out of the leaderboard', async () => {
      await ledger.close();
      ledger = await open({ ownMachinesFree: true });
      await give(ledger, 'customer', 1000);
      await ledger.linkProvider(PROVIDER, 'customer', T0);
      const job = reservation();
      await ledger.reserve(job);
      expect(await ledger.settle(settlement(job.jobId))).toEqual({ kind: 'settled', cost: 0, earned: 0, fee: 0 });
      expect((await ledger.balance('customer')).balance).toBe(1000);
      await foldJobs(database);
      const totals = await database.selectFrom('account_totals').selectAll().where('window', '=', 'all').execute();
      expect(totals).toMatchObject([{ account: 'customer', requests: 1, served_jobs: 0, served_tokens: 0 }]);
    });

    it('costs its own account only the fee without that setting: the rest returns as the kind that was spent', async () => {
      await give(ledger, 'customer', 1000);
      await ledger.linkProvider(PROVIDER, 'customer', T0);
      const job = reservation();
      await ledger.reserve(job);
      await ledger.settle(settlement(job.jobId));
      expect(await ledger.balance('customer')).toEqual({ balance: 997, reserved: 0, withdrawable: 0 });
    });
  });

  describe('a balance for one', () => {
    it('lets exactly one of a hundred jobs begin', async () => {
      await give(ledger, 'customer', 199);
      const outcomes = await Promise.all(Array.from({ length: 100 }, () => ledger.reserve(reservation())));
      expect(outcomes.filter((outcome) => outcome.kind === 'reserved')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.kind === 'insufficient_balance')).toHaveLength(99);
      expect(outcomes.find((outcome) => outcome.kind !== 'reserved')).toEqual({ kind: 'insufficient_balance', needed: 100, available: 99 });
    });

    it('is zero for an unknown account', async () => {
      expect(await ledger.reserve(reservation({ accountId: 'nobody' }))).toEqual({
        kind: 'insufficient_balance',
        needed: 100,
        available: 0,
      });
      expect(await ledger.balance('nobody')).toEqual({ balance: 0, reserved: 0, withdrawable: 0 });
    });
  });

  it('limits a key by its spending and by the reservations of its running jobs', async () => {
    await give(ledger, 'customer', 1000);
    const limited = { keySpendLimit: microUsd(250) };
    const jobs = [reservation(limited), reservation(limited), reservation(limited)] as const;
    const outcomes = await Promise.all(jobs.map((job) => ledger.reserve(job)));
    expect(outcomes).toMatchObject([{ kind: 'reserved' }, { kind: 'reserved' }, { kind: 'key_limit_reached', needed: 100, left: 50 }]);
    await ledger.settle(settlement(jobs[0].jobId));
    expect(await ledger.reserve(reservation(limited))).toMatchObject({ kind: 'reserved' });
    await ledger.release(jobs[1].jobId, T0);
    expect(await ledger.reserve(reservation({ ...limited, apiKeyId: 'another' }))).toMatchObject({ kind: 'reserved' });
    expect(await database.selectFrom('key_spend').selectAll().where('api_key_id', '=', 'key').execute()).toEqual([
      { api_key_id: 'key', spent: 30, held: 100, spent_pruned: 0, counted_day: dayOf(T0), day_spent: 30, week_spent: 30, month_spent: 30 },
    ]);
  });

  describe('deposits and withdrawals', () => {
    it('credit an event once', async () => {
      const deposit = { eventId: 'evt_1', accountId: 'customer', amount: microUsd(500), source: 'stripe', at: T0 } as const;
      const outcomes = await Promise.all([ledger.deposit(deposit), ledger.deposit(deposit)]);
      expect(outcomes).toEqual([{ kind: 'deposited' }, { kind: 'already_deposited' }]);
      expect(await ledger.deposit(deposit)).toEqual({ kind: 'already_deposited' });
      expect((await ledger.balance('customer')).balance).toBe(500);
    });

    it('pay out earnings only, and spend deposited money first', async () => {
      await give(ledger, 'customer', 1000);
      await ledger.linkProvider(PROVIDER, 'earner', T0);
      const first = reservation();
      await ledger.reserve(first);
      await ledger.settle(settlement(first.jobId, { promptTokens: 40, completionTokens: 60 }));
      await give(ledger, 'earner', 50);
      expect(await ledger.balance('earner')).toEqual({ balance: 140, reserved: 0, withdrawable: 90 });
      const own = reservation({ accountId: 'earner', apiKeyId: 'k2' });
      await ledger.reserve(own);
      expect((await ledger.balance('earner')).withdrawable).toBe(40);
      const foreign = 'e'.repeat(32) as typeof PROVIDER;
      await ledger.settle(settlement(own.jobId, { promptTokens: 40, completionTokens: 30, providerId: foreign }));
      expect(await ledger.balance('earner')).toEqual({ balance: 70, reserved: 0, withdrawable: 70 });
      await give(ledger, 'earner', 1000);
      expect((await ledger.balance('earner')).withdrawable).toBe(70);

      expect(await ledger.requestWithdrawal({ id: 'w1', accountId: 'earner', amount: microUsd(71), at: T0 })).toEqual({
        kind: 'insufficient',
        withdrawable: 70,
      });
      const request = { id: 'w2', accountId: 'earner', amount: microUsd(60), at: T0 };
      expect(await Promise.all([ledger.requestWithdrawal(request), ledger.requestWithdrawal(request)])).toEqual([
        { kind: 'requested' },
        { kind: 'requested' },
      ]);
      await expect(ledger.requestWithdrawal({ ...request, amount: microUsd(1) })).rejects.toMatchObject({ fault: 'conflict' });
      expect(await ledger.balance('earner')).toEqual({ balance: 1010, reserved: 0, withdrawable: 10 });
      expect(await ledger.endWithdrawal('w2', 'rejected', T0)).toEqual({ kind: 'ended' });
      expect(await ledger.endWithdrawal('w2', 'paid', T0)).toEqual({ kind: 'already_ended', end: 'rejected' });
      expect((await ledger.balance('earner')).withdrawable).toBe(70);
      await ledger.requestWithdrawal({ id: 'w3', accountId: 'earner', amount: microUsd(70), at: T0 });
      expect(await ledger.endWithdrawal('w3', 'paid', T0)).toEqual({ kind: 'ended' });
      expect(await ledger.endWithdrawal('none', 'paid', T0)).toEqual({ kind: 'unknown_withdrawal' });
      expect(await ledger.balance('earner')).toEqual({ balance: 1000, reserved: 0, withdrawable: 0 });
    });
  });

  describe('a provider', () => {
    it('stores its earnings until an account claims the provider, and then earns for that account', async () => {
      await give(ledger, 'customer', 1000);
      const [one, two, three] = [reservation(), reservation(), reservation()] as const;
      for (const job of [one, two, three]) await ledger.reserve(job);
      await ledger.settle(settlement(one.jobId));
      await ledger.linkProvider(PROVIDER, 'owner', T0);
      await ledger.linkProvider(PROVIDER, 'owner', T0 + 1);
      expect(await ledger.balance('owner')).toEqual({ balance: 27, reserved: 0, withdrawable: 27 });
      await ledger.settle(settlement(two.jobId));
      expect((await ledger.balance('owner')).balance).toBe(54);
      await ledger.linkProvider(PROVIDER, 'next', T0 + 2);
      await ledger.settle(settlement(three.jobId));
      expect((await ledger.balance('owner')).balance).toBe(54);
      expect((await ledger.balance('next')).balance).toBe(27);
      expect((await ledger.balance(`provider:${PROVIDER}`)).balance).toBe(0);
      await foldJobs(database);
      const board = await database
        .selectFrom('account_totals')
        .selectAll()
        .where('window', '=', '24h')
        .where('served_jobs', '>', 0)
        .execute();
      expect(new Map(board.map((row) => [row.account, row.earned]))).toEqual(
        new Map([
          ['owner', 54],
          ['next', 27],
        ]),
      );
    });

    it('loses nothing when it is claimed while its jobs settle', async () => {
      await give(ledger, 'customer', 100_000);
      const jobs = Array.from({ length: 60 }, () => reservation());
      await Promise.all(jobs.map((job) => ledger.reserve(job)));
      const settled = jobs.map((job) => ledger.settle(settlement(job.jobId)));
      await Promise.all([...settled, ledger.linkProvider(PROVIDER, 'owner', T0)]);
      expect((await ledger.balance('owner')).balance).toBe(60 * 27);
    });
  });

  describe('malformed values', () => {
    const refused = (promise: Promise<unknown>) => expect(promise).rejects.toBeInstanceOf(LedgerError);

    it('are rejected, and other steps of the same transaction are not', async () => {
      const good = give(ledger, 'customer', 1000);
      const deposit = { eventId: 'e', accountId: 'customer', source: 'admin', at: T0 } as const;
      for (const amount of [-1, 0, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1e13 + 1]) {
        await refused(ledger.deposit({ ...deposit, amount: amount as ReturnType<typeof microUsd> }));
      }
      await refused(ledger.deposit({ ...deposit, accountId: 'system:fees', amount: microUsd(5) }));
      await refused(ledger.deposit({ ...deposit, eventId: '', amount: microUsd(5) }));
      const job = reservation();
      const [bad, right] = await Promise.allSettled([ledger.reserve(reservation({ maxPromptTokens: 2 ** 52 })), ledger.reserve(job)]);
      expect(bad.status).toBe('rejected');
      expect(right).toMatchObject({ value: { kind: 'reserved' } });
      for (const count of [-1, 0.1, Number.NaN, 2 ** 53]) {
        await refused(ledger.reserve(reservation({ maxCompletionTokens: count })));
        await refused(ledger.settle(settlement(job.jobId, { promptTokens: count })));
        await refused(ledger.settle(settlement(job.jobId, { at: count })));
      }
      await refused(ledger.requestWithdrawal({ id: 'w', accountId: 'customer', amount: -5 as ReturnType<typeof microUsd>, at: T0 }));
      await good;
      expect(await ledger.balance('customer')).toEqual({ balance: 1000, reserved: 100, withdrawable: 0 });
    });

    it('never let a balance exceed exact integers', async () => {
      const max = { accountId: 'customer', amount: microUsd(1e13), source: 'admin', at: T0 } as const;
      await database.insertInto('balances').values({ account: 'rich', balance: 9e15, reserved: 0, earned: 0 }).execute();
      await refused(ledger.deposit({ ...max, accountId: 'rich', eventId: 'too much' }));
      await database.deleteFrom('balances').where('account', '=', 'rich').execute();
    });
  });

  describe('the sweeper', () => {
    it('releases old jobs of this coordinator that are not live', async () => {
      await give(ledger, 'customer', 1000);
      const [live, old, young] = [reservation(), reservation(), reservation({ at: T0 + 10 })] as const;
      for (const job of [live, old, young]) await ledger.reserve(job);
      expect(await ledger.sweep(new Set([live.jobId]), T0 + 5)).toBe(1);
      expect((await ledger.balance('customer')).reserved).toBe(200);
      expect(await ledger.settle(settlement(old.jobId))).toEqual({ kind: 'released_before' });
    });

    it('releases reservations of a dead coordinator, and none of a live one', async () => {
      await give(ledger, 'customer', 1000);
      await ledger.reserve(reservation());
      if (dialect === 'postgres') {
        const second = await open({ now: () => T0 + 60_000 });
        expect((await second.balance('customer')).reserved).toBe(100);
        await second.close();
        // Only the age of the heartbeat by the database's clock makes a coordinator dead, not its own clock.
        await database
          .updateTable('ledger_holders')
          .set((set) => ({ seen_at: set('seen_at', '-', 3_600_000) }))
          .execute();
      }
      const later = await open({ now: () => T0 + 3_600_000 });
      expect((await later.balance('customer')).reserved).toBe(0);
      await later.close();
    });
  });

  it('accepts no step after closing, and finishes queued steps', async () => {
    const waiting = give(ledger, 'customer', 7);
    await ledger.close();
    await waiting;
    expect((await ledger.balance('customer')).balance).toBe(7);
    await expect(give(ledger, 'customer', 7)).rejects.toMatchObject({ fault: 'closed' });
  });
});
