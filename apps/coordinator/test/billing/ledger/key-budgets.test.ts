/** Budgets of API keys: periods and refusals. No period's spending exceeds the budget, even with several ledgers on one database. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../../test/support/seeded-random.js';
import type { Ledger, Reservation } from '../../../src/billing/ledger/ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import {
  addSpending,
  dayOf,
  type KeyBudget,
  nextPeriodStart,
  periodStart,
  spentInPeriod,
} from '../../../src/database/ledger/key-budget.js';
import { repairPeriodSpending } from '../../../src/database/ledger/repair-period-spending.js';
import type { BudgetPeriod, Database } from '../../../src/database/tables.js';
import { closeChecked, describeDatabases, type TestDatabase } from '../../support/databases.js';
import { give, openTestLedger, reservation, settlement, T0 } from './random-steps.js';

const HOUR_MS = 3_600_000;
const day = (text: string): number => dayOf(Date.parse(text));
const budgetOf = (amount: number, period: BudgetPeriod = 'month'): KeyBudget => ({ amount: microUsd(amount), period });

describe('calendar periods', () => {
  it.each([
    ['day', '2026-02-28', '2026-02-28', '2026-03-01'],
    ['week', '2026-11-29', '2026-11-23', '2026-11-30'],
    ['week', '2026-11-30', '2026-11-30', '2026-12-07'],
    ['week', '2027-01-01', '2026-12-28', '2027-01-04'],
    ['month', '2026-12-31', '2026-12-01', '2027-01-01'],
    ['month', '2028-02-29', '2028-02-01', '2028-03-01'],
  ] as const)('of a %s around %s start on %s, the next on %s', (period, inside, start, next) => {
    expect([periodStart(period, day(inside)), nextPeriodStart(period, day(inside))]).toEqual([day(start), day(next)]);
  });

  it('sum the costs of their own days', () => {
    let spending = { countedDay: 0, daySpent: microUsd(0), weekSpent: microUsd(0), monthSpent: microUsd(0) };
    const sums = (on: string) => (['day', 'week', 'month'] as const).map((period) => spentInPeriod(spending, period, day(on)));
    // Monday to Sunday across the end of a month.
    for (const [on, cost] of [
      ['2026-11-28', 1],
      ['2026-11-30', 10],
      ['2026-11-30', 100],
      ['2026-12-01', 1000],
    ] as const)
      spending = addSpending(spending, microUsd(cost), day(on));
    expect(sums('2026-12-01')).toEqual([1000, 1110, 1000]);
    expect(sums('2026-12-02')).toEqual([0, 1110, 1000]);
    expect(sums('2026-12-07')).toEqual([0, 0, 1000]);
    expect(sums('2027-01-01')).toEqual([0, 0, 0]);
    // From a coordinator whose clock is slow.
    spending = addSpending(spending, microUsd(5), day('2026-11-30'));
    expect(sums('2026-12-01')).toEqual([1005, 1115, 1005]);
  });
});

describeDatabases('key budgets', (fresh, dialect) => {
  let place: TestDatabase;
  let database: Database;
  let ledger: Ledger;

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    ledger = await openTestLedger(database);
    await give(ledger, 'customer', 10_000_000);
  });
  afterEach(() => closeChecked(place, database, ledger));

  /** Spends 30 micro-USD. */
  const spend = async (at: number, over: Partial<Reservation> = {}): Promise<void> => {
    const job = reservation({ at, ...over });
    expect(await ledger.reserve(job)).toMatchObject({ kind: 'reserved' });
    await ledger.settle(settlement(job.jobId, { at }));
  };

  it('count spending in the period and reservations of running jobs', async () => {
    await spend(T0);
    const running = reservation({ keyBudget: budgetOf(229) });
    expect(await ledger.reserve(running)).toMatchObject({ kind: 'reserved' });
    const refused = reservation({ keyBudget: budgetOf(229) });
    expect(await ledger.reserve(refused)).toEqual({
      kind: 'key_budget_exceeded',
      needed: 100,
      budget: { amount: 229, period: 'month' },
      spent: 30,
      reserved: 100,
      resetsAt: Date.UTC(2026, 1, 1),
    });
    // The settlement returns the unused part.
    await ledger.settle(settlement(running.jobId));
    expect(await ledger.reserve(refused)).toMatchObject({ kind: 'reserved' });
    await ledger.release(refused.jobId, T0);
  });

  it('start anew with the period, and are bound by the new amount at once', async () => {
    const endOfMonth = Date.UTC(2026, 1, 1) - 1;
    for (let jobs = 0; jobs < 3; jobs++) await spend(endOfMonth);
    const at = (time: number, keyBudget: KeyBudget) => ledger.reserve(reservation({ at: time, keyBudget, apiKeyId: 'key' }));
    expect(await at(endOfMonth, budgetOf(150))).toMatchObject({ kind: 'key_budget_exceeded', spent: 90 });
    expect(await at(endOfMonth, budgetOf(1))).toMatchObject({ kind: 'key_budget_exceeded', spent: 90 });
    expect(await at(endOfMonth, budgetOf(150, 'day'))).toMatchObject({ kind: 'key_budget_exceeded', spent: 90 });
    const raised = reservation({ at: endOfMonth, keyBudget: budgetOf(190) });
    expect(await ledger.reserve(raised)).toMatchObject({ kind: 'reserved' });
    await ledger.release(raised.jobId, endOfMonth);
    const next = reservation({ at: endOfMonth + 1, keyBudget: budgetOf(100) });
    expect(await ledger.reserve(next)).toMatchObject({ kind: 'reserved' });
    await ledger.settle(settlement(next.jobId, { at: endOfMonth + 1 }));
    // 31 January and 1 February are in the same week.
    expect(await at(endOfMonth + 1, budgetOf(200, 'week'))).toMatchObject({ kind: 'key_budget_exceeded', spent: 120 });
    expect(await at(endOfMonth + 1, budgetOf(129))).toMatchObject({ kind: 'key_budget_exceeded', spent: 30 });
  });

  it('include spending at coordinators of an earlier version, after the next start', async () => {
    const sums = () => database.selectFrom('key_spend').select(['counted_day', 'day_spent', 'week_spent', 'month_spent']).execute();
    await spend(T0 - 24 * HOUR_MS);
    await spend(T0);
    const right = await sums();
    // Earlier versions only increase the total.
    await database.updateTable('key_spend').set({ day_spent: 0, week_spent: 30, month_spent: 30 }).execute();
    expect(await repairPeriodSpending(database, T0)).toBe(1);
    expect(await sums()).toEqual(right);
    await database.updateTable('key_spend').set({ counted_day: 0, day_spent: 0, week_spent: 0, month_spent: 0 }).execute();
    expect(await repairPeriodSpending(database, T0)).toBe(1);
    expect(await sums()).toEqual(right);
    expect(await repairPeriodSpending(database, T0)).toBe(0);
    expect(await sums()).toEqual(right);
  });

  it('leave other keys of the account alone', async () => {
    await spend(T0, { apiKeyId: 'other' });
    await spend(T0, { keyBudget: budgetOf(100) });
    expect(await ledger.reserve(reservation({ keyBudget: budgetOf(100) }))).toMatchObject({ kind: 'key_budget_exceeded' });
    await spend(T0, { apiKeyId: 'other' });
  });

  it.each([1, 2, 3])('are never exceeded by concurrent jobs of several ledgers (seed %i)', async (seed) => {
    const random = seededRandom(seed);
    const upTo = (max: number): number => Math.floor(random() * (max + 1));
    // One process per SQLite file. On PostgreSQL three, in which keys without a budget use credit leases.
    const leases = { minPerSecond: 1, lifetimeMs: 600_000, pauseMs: 0 };
    const ledgers = [ledger];
    for (let more = 0; dialect === 'postgres' && more < 2; more++) ledgers.push(await openTestLedger(database, { leases }));
    const budgets: Record<string, KeyBudget | null> = {
      day: budgetOf(900, 'day'),
      week: budgetOf(1500, 'week'),
      month: budgetOf(2500),
      free: null,
    };
    const ended: { readonly key: string; readonly at: number; readonly cost: number }[] = [];
    const outcomes = new Set<string>();
    const runJob = async (at: number): Promise<void> => {
      const key = ['day', 'week', 'month', 'free'][upTo(3)] ?? 'free';
      const own = ledgers[upTo(ledgers.length - 1)] ?? ledger;
      const job = reservation({ apiKeyId: key, keyBudget: budgets[key] ?? null, maxPromptTokens: upTo(150), at });
      const uses = { promptTokens: upTo(150), completionTokens: upTo(80) };
      const isReleased = random() < 0.2;
      const reserved = await own.reserve(job);
      outcomes.add(`${key} ${reserved.kind}`);
      if (reserved.kind !== 'reserved') return;
      if (isReleased) return void (await own.release(job.jobId, at));
      const settled = await own.settle(settlement(job.jobId, { ...uses, at }));
      if ('cost' in settled) ended.push({ key, at, cost: settled.cost });
    };
    // Twelve days that include the end of a week and of a month.
    for (let hours = 0; hours < 12 * 24; hours += 8) {
      const at = Date.UTC(2026, 0, 24) + hours * HOUR_MS;
      await Promise.all(Array.from({ length: 24 }, () => runJob(at)));
    }
    for (const other of ledgers.slice(1)) await other.close();
    const periods = ['day', 'week', 'month'] as const;
    expect([...outcomes].sort()).toEqual([
      ...['day key_budget_exceeded', 'day reserved', 'free reserved'],
      ...['month key_budget_exceeded', 'month reserved', 'week key_budget_exceeded', 'week reserved'],
    ]);
    for (const period of periods) {
      const sums = new Map<number, number>();
      for (const { key, at, cost } of ended) {
        if (key !== period) continue;
        const start = periodStart(period, dayOf(at));
        sums.set(start, (sums.get(start) ?? 0) + cost);
      }
      expect(Math.max(...sums.values())).toBeLessThanOrEqual(budgets[period]?.amount ?? 0);
      // The budget is also used up: a job reserves at most 210.
      expect(Math.max(...sums.values())).toBeGreaterThan((budgets[period]?.amount ?? 0) - 210);
    }
  });
});
