/** Earnings that cannot be withdrawn: those from own providers, and those that are not mature. */
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Ledger } from '../../../src/billing/ledger/ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { earningsConcentration } from '../../../src/database/earnings-repository.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { linkProvider, unlinkProvider } from '../../../src/database/ledger/link-provider.js';
import { pruneHistory } from '../../../src/database/ledger/prune-history.js';
import { maturingEarnings } from '../../../src/database/migrations/0047-maturing-earnings.js';
import type { Database } from '../../../src/database/tables.js';
import { closeChecked, describeDatabases, type TestDatabase } from '../../support/databases.js';
import { give, openTestLedger, PROVIDER, reservation, settlement, T0 } from './random-steps.js';

const DAY = 86_400_000;
const DAYS = 7;
/** Midnight at which the earnings of the day of `T0` mature. */
const MATURES = Math.floor(T0 / DAY) * DAY + (DAYS + 1) * DAY;

describeDatabases('earnings', (fresh) => {
  let place: TestDatabase;
  let database: Database;
  let ledger: Ledger;
  let now = T0;

  beforeEach(async () => {
    now = T0;
    place = await fresh();
    database = await place.open();
    ledger = await openTestLedger(database, { maturityDays: DAYS, now: () => now });
  });
  afterEach(() => closeChecked(place, database, ledger));

  /** A job that costs 100: 90 for the provider, 10 for the network. */
  async function pay(accountId: string, providerId = PROVIDER, at = now): Promise<void> {
    const job = reservation({ accountId, apiKeyId: `key of ${accountId}`, at });
    await ledger.reserve(job);
    const used = { providerId, promptTokens: 40, completionTokens: 60, at };
    expect(await ledger.settle(settlement(job.jobId, used))).toMatchObject({ kind: 'settled', cost: 100, earned: 90 });
  }
  let requests = 0;
  const withdraw = (accountId: string, amount: number) =>
    ledger.requestWithdrawal({ id: `w${requests++}`, accountId, amount: microUsd(amount), at: now });
  const withdrawable = async (accountId: string) => (await ledger.balance(accountId)).withdrawable;
  const link = (accountId: string, providerId = PROVIDER) => ledger.linkProvider(providerId, accountId, now);

  describe('of an own provider', () => {
    it('never make deposited money withdrawable', async () => {
      await give(ledger, 'ann', 1000);
      await link('ann');
      for (let jobs = 0; jobs < 5; jobs++) await pay('ann');
      expect(await ledger.balance('ann')).toEqual({ balance: 950, reserved: 0, withdrawable: 0 });
      now = MATURES;
      expect(await withdrawable('ann')).toBe(0);
      expect(await ledger.pendingEarnings('ann')).toEqual({ total: 0, maturing: [] });
    });

    it('restore earnings as earnings, and deposited money as deposited money', async () => {
      await give(ledger, 'bob', 1000);
      await link('ann');
      await pay('bob');
      now = MATURES;
      expect(await withdrawable('ann')).toBe(90);
      await give(ledger, 'ann', 40);
      // 40 come from the deposit and 60 from earnings. Only the fee of 10 is spent.
      await pay('ann');
      expect(await ledger.balance('ann')).toEqual({ balance: 120, reserved: 0, withdrawable: 90 });
      for (let jobs = 0; jobs < 2; jobs++) await pay('ann');
      expect(await ledger.balance('ann')).toEqual({ balance: 100, reserved: 0, withdrawable: 90 });
      expect(await withdraw('ann', 91)).toEqual({ kind: 'insufficient', withdrawable: 90 });
    });

    it('linked after the payment return as the kind that was spent; payments of others are earnings', async () => {
      await give(ledger, 'ann', 1000);
      await give(ledger, 'bob', 1000);
      await pay('ann');
      await pay('bob');
      await link('ann');
      now = MATURES;
      expect(await ledger.balance('ann')).toEqual({ balance: 1080, reserved: 0, withdrawable: 90 });
    });

    it('unlinked during its job and linked again return as the kind that was spent', async () => {
      await give(ledger, 'ann', 1000);
      await link('ann');
      const job = reservation({ accountId: 'ann' });
      await ledger.reserve(job);
      await database.insertInto('machines_last_seen').values({ provider_id: PROVIDER, seen_at: now, facts: '{}' }).execute();
      await database
        .transaction()
        .execute((transaction) => unlinkProvider(transaction, { providerId: PROVIDER, accountId: 'ann', at: now }));
      expect(await database.selectFrom('machines_last_seen').selectAll().execute()).toEqual([]);
      await ledger.settle(settlement(job.jobId, { promptTokens: 40, completionTokens: 60 }));
      await database
        .transaction()
        .execute((transaction) => linkProvider(transaction, { providerId: PROVIDER, accountId: 'ann', at: now, replaces: 'closed_owner' }));
      now = MATURES;
      expect(await ledger.balance('ann')).toEqual({ balance: 990, reserved: 0, withdrawable: 0 });
    });

    it('return as the kind that was spent after any time without an owner', async () => {
      await give(ledger, 'ann', 1000);
      await pay('ann');
      now = T0 + 150 * DAY;
      await pay('ann', 'e'.repeat(32) as typeof PROVIDER);
      await pruneHistory(database, now - 120 * DAY);
      const rows = await database
        .selectFrom('payer_earnings')
        .select(['day', 'earned'])
        .where('earner', '=', `provider:${PROVIDER}`)
        .execute();
      expect(rows).toEqual([{ day: -1, earned: 90 }]);
      await link('ann');
      expect(await ledger.balance('ann')).toEqual({ balance: 890, reserved: 0, withdrawable: 0 });
    });
  });

  describe('from others', () => {
    beforeEach(async () => {
      await give(ledger, 'bob', 10_000);
      await link('ann');
    });

    it('can be withdrawn from the midnight at which their whole day is old enough, and not a millisecond before', async () => {
      await pay('bob');
      expect(await ledger.balance('ann')).toEqual({ balance: 90, reserved: 0, withdrawable: 0 });
      now = T0 + DAY;
      await pay('bob');
      expect(await ledger.pendingEarnings('ann')).toEqual({
        total: 180,
        maturing: [
          { at: MATURES, amount: 90 },
          { at: MATURES + DAY, amount: 90 },
        ],
      });
      now = MATURES - 1;
      expect(await withdraw('ann', 1)).toEqual({ kind: 'insufficient', withdrawable: 0 });
      now = MATURES;
      expect(await ledger.balance('ann')).toEqual({ balance: 180, reserved: 0, withdrawable: 90 });
      expect(await withdraw('ann', 91)).toEqual({ kind: 'insufficient', withdrawable: 90 });
      expect(await withdraw('ann', 90)).toEqual({ kind: 'requested' });
      expect(await withdraw('ann', 1)).toEqual({ kind: 'insufficient', withdrawable: 0 });
      expect(await ledger.pendingEarnings('ann')).toEqual({ total: 90, maturing: [{ at: MATURES + DAY, amount: 90 }] });
    });

    it('are not withdrawable in the transaction that earns them', async () => {
      const job = reservation({ accountId: 'bob' });
      await ledger.reserve(job);
      const steps = [ledger.settle(settlement(job.jobId)), withdraw('ann', 1)];
      expect(await Promise.all(steps)).toMatchObject([{ kind: 'settled' }, { kind: 'insufficient', withdrawable: 0 }]);
    });

    it('stay matured when a withdrawal is rejected', async () => {
      await pay('bob');
      now = MATURES;
      const id = `w${requests}`;
      await withdraw('ann', 90);
      await ledger.endWithdrawal(id, 'rejected', now);
      expect(await withdrawable('ann')).toBe(90);
    });

    it('are spent from the matured part first, so that spending shortens no maturity', async () => {
      await pay('bob');
      now = MATURES;
      await pay('bob');
      await pay('ann', 'e'.repeat(32) as typeof PROVIDER);
      expect(await ledger.balance('ann')).toEqual({ balance: 80, reserved: 0, withdrawable: 0 });
      expect(await ledger.pendingEarnings('ann')).toEqual({ total: 80, maturing: [{ at: MATURES + 8 * DAY, amount: 80 }] });
      now = MATURES + 8 * DAY;
      expect(await withdrawable('ann')).toBe(80);
    });

    it('mature no earlier if the provider had no owner at the time', async () => {
      const other = 'e'.repeat(32) as typeof PROVIDER;
      await pay('bob', other);
      now = T0 + 3 * DAY;
      await link('cid', other);
      expect(await withdrawable('cid')).toBe(0);
      expect(await ledger.pendingEarnings('cid')).toEqual({ total: 90, maturing: [{ at: MATURES, amount: 90 }] });
      now = MATURES;
      expect(await withdrawable('cid')).toBe(90);
    });

    it('from before the migration stay withdrawable, and their payers are known', async () => {
      await pay('bob');
      await sql`drop table pending_earnings`.execute(database);
      await sql`drop table payer_earnings`.execute(database);
      await maturingEarnings.up(database);
      expect(await withdrawable('ann')).toBe(90);
      await pay('bob');
      expect(await ledger.balance('ann')).toEqual({ balance: 180, reserved: 0, withdrawable: 90 });
      const all = { from: 0, minSharePercent: 50, minEarned: 0, limit: 10 };
      expect(await earningsConcentration(database, all)).toMatchObject([{ owner: { id: 'ann' }, payer: { id: 'bob' }, earned: 180 }]);
      expect((await checkLedger(database)).problems).toEqual([]);
    });

    it('are verified against their jobs', async () => {
      await pay('bob');
      const problems = async () => (await checkLedger(database)).problems.join();
      const add = (amount: number) =>
        database
          .updateTable('pending_earnings')
          .set((set) => ({ amount: set('amount', '+', amount) }))
          .execute();
      const addPaid = (earned: number) =>
        database
          .updateTable('payer_earnings')
          .set((set) => ({ earned: set('earned', '+', earned) }))
          .execute();
      await add(-1);
      expect(await problems()).toContain('the earnings of an account on a day differ from its jobs');
      await add(1);
      await addPaid(1);
      expect(await problems()).toContain('the earnings of an account from a payer differ from its jobs');
      await addPaid(-1);
    });
  });

  it('concentrated on one payer are found, by share and amount', async () => {
    const other = 'e'.repeat(32) as typeof PROVIDER;
    for (const payer of ['bob', 'cid', 'dot']) await give(ledger, payer, 10_000);
    await link('ann');
    for (const payer of ['bob', 'bob', 'bob', 'cid']) await pay(payer);
    await pay('ann');
    await pay('dot', other);
    await pay('cid', other);
    const day = Math.floor(T0 / DAY);
    const found = async (minSharePercent: number, minEarned: number, from = day) =>
      (await earningsConcentration(database, { from, minSharePercent, minEarned, limit: 10 })).map(
        ({ owner, providerId, payer, earned, ownerEarned, payerPaid }) => [
          owner?.id ?? providerId,
          payer.id,
          earned,
          ownerEarned,
          payerPaid,
        ],
      );
    expect(await found(75, 0)).toEqual([['ann', 'bob', 270, 360, 270]]);
    expect(await found(76, 0)).toEqual([]);
    expect(await found(50, 0)).toEqual([
      ['ann', 'bob', 270, 360, 270],
      [other, 'cid', 90, 180, 180],
      [other, 'dot', 90, 180, 90],
    ]);
    expect(await found(50, 91)).toEqual([['ann', 'bob', 270, 360, 270]]);
    expect(await found(1, 0, day + 1)).toEqual([]);
  });
});
