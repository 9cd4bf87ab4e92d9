/** Usage roll-ups: hours of each window as time passes. Deleting old jobs changes no sum. */
import type { ProviderId } from '@inference/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Ledger } from '../../../src/billing/ledger/ledger.js';
import { checkLedger } from '../../../src/database/ledger/check-ledger.js';
import { foldJobs } from '../../../src/database/ledger/fold-jobs.js';
import { pruneHistory } from '../../../src/database/ledger/prune-history.js';
import type { Database } from '../../../src/database/tables.js';
import { closeChecked, describeDatabases, type TestDatabase } from '../../support/databases.js';
import { give, openTestLedger, PROVIDER, reservation, settlement, T0 } from './random-steps.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describeDatabases('the roll-ups', (fresh) => {
  let place: TestDatabase;
  let database: Database;
  let ledger: Ledger;
  let now: number;

  const open = (): Promise<Ledger> => openTestLedger(database, { now: () => now, onError: () => undefined });
  const reopen = async (): Promise<void> => {
    await ledger.close();
    ledger = await open();
  };
  const runJob = async (at: number, accountId = 'customer', providerId: ProviderId = PROVIDER): Promise<void> => {
    const job = reservation({ at, accountId });
    expect(await ledger.reserve(job)).toMatchObject({ kind: 'reserved' });
    expect(await ledger.settle(settlement(job.jobId, { at, providerId }))).toMatchObject({ kind: 'settled' });
  };
  const requests = async (): Promise<Record<string, number>> => {
    await foldJobs(database);
    const rows = await database.selectFrom('network_totals').select(['window', 'requests']).execute();
    return Object.fromEntries(rows.map((row) => [row.window, row.requests]));
  };
  const everything = async (): Promise<unknown> => {
    await foldJobs(database);
    return {
      accounts: await database.selectFrom('account_totals').selectAll().orderBy('window').orderBy('account').execute(),
      network: await database.selectFrom('network_totals').selectAll().orderBy('window').execute(),
      balances: await database.selectFrom('balances').selectAll().orderBy('account').execute(),
      keys: await database.selectFrom('key_spend').select(['api_key_id', 'spent', 'held']).execute(),
    };
  };

  beforeEach(async () => {
    now = T0;
    place = await fresh();
    database = await place.open();
    ledger = await open();
    await give(ledger, 'customer', 1_000_000);
    await give(ledger, 'another', 1_000_000);
  });
  afterEach(() => closeChecked(place, database, ledger));

  it("count a job in each window for the window's length", async () => {
    await runJob(T0);
    expect(await requests()).toEqual({ '24h': 1, '7d': 1, '30d': 1, all: 1 });
    now = T0 + DAY;
    await reopen();
    expect(await requests()).toEqual({ '24h': 1, '7d': 1, '30d': 1, all: 1 });
    now = T0 + DAY + HOUR;
    await reopen();
    expect(await requests()).toEqual({ '24h': 0, '7d': 1, '30d': 1, all: 1 });
    // A settlement advances the windows like the clock does.
    await runJob(T0 + 8 * DAY);
    expect(await requests()).toEqual({ '24h': 1, '7d': 1, '30d': 2, all: 2 });
    now = T0 + 60 * DAY;
    await reopen();
    expect(await requests()).toEqual({ '24h': 0, '7d': 0, '30d': 0, all: 2 });
    expect(await database.selectFrom('account_totals').select('account').where('window', '<>', 'all').execute()).toEqual([]);
  });

  it('count late jobs in their own hour', async () => {
    await runJob(T0);
    for (const age of [23 * HOUR, 3 * DAY, 20 * DAY, 100 * DAY]) await runJob(T0 - age);
    expect(await requests()).toEqual({ '24h': 2, '7d': 3, '30d': 4, all: 5 });
  });

  it('count each active account once', async () => {
    const active = async (): Promise<Record<string, number>> => {
      await foldJobs(database);
      const rows = await database.selectFrom('network_totals').select(['window', 'active_accounts']).execute();
      return Object.fromEntries(rows.map((row) => [row.window, row.active_accounts]));
    };
    await Promise.all([runJob(T0), runJob(T0), runJob(T0 - 2 * DAY, 'another')]);
    expect(await active()).toEqual({ '24h': 2, '7d': 3, '30d': 3, all: 3 });
    await ledger.linkProvider(PROVIDER, 'another', T0);
    expect(await active()).toEqual({ '24h': 2, '7d': 2, '30d': 2, all: 2 });
    now = T0 + 2 * DAY;
    await reopen();
    expect(await active()).toEqual({ '24h': 0, '7d': 2, '30d': 2, all: 2 });
  });

  it('have one row per minute with jobs', async () => {
    await Promise.all([runJob(T0), runJob(T0 + 59_999), runJob(T0 + 60_000)]);
    await foldJobs(database);
    expect(await database.selectFrom('minute_totals').selectAll().orderBy('minute').execute()).toEqual([
      { minute: T0 / 60_000, requests: 2, prompt_tokens: 20, completion_tokens: 40 },
      { minute: T0 / 60_000 + 1, requests: 1, prompt_tokens: 10, completion_tokens: 20 },
    ]);
  });

  it('and balances stay unchanged when history is pruned', async () => {
    for (let age = 0; age < 60; age += 5) await runJob(T0 - age * DAY, age % 2 === 0 ? 'customer' : 'another');
    await ledger.reserve(reservation({ at: T0 - 59 * DAY }));
    const before = await everything();
    const pruned = await pruneHistory(database, T0 - 10 * DAY);
    expect(pruned.jobs).toBe(9);
    expect(pruned.postings).toBeGreaterThanOrEqual(27);
    expect(pruned.hours).toBeGreaterThan(0);
    expect(await everything()).toEqual(before);
    expect((await checkLedger(database)).problems).toEqual([]);
    expect(await pruneHistory(database, T0 - 10 * DAY)).toEqual({ jobs: 0, postings: 0, hours: 0 });
    await Promise.all([pruneHistory(database, T0 + 1), runJob(T0), runJob(T0)]);
    expect(await database.selectFrom('jobs').select('state').where('state', '=', 'reserved').execute()).toHaveLength(1);
  });

  it('are reported by the check after any single wrong number', async () => {
    await runJob(T0);
    await ledger.reserve(reservation());
    await foldJobs(database);
    const spoil = async (
      table: 'balances' | 'postings' | 'network_totals' | 'account_totals' | 'account_hours' | 'key_spend',
      column: string,
    ) => {
      const change = (by: number) =>
        database
          .updateTable(table as 'balances')
          .set((set) => ({ [column]: set(column as 'balance', '+', by) }))
          .execute();
      await change(1);
      const { problems } = await checkLedger(database);
      await change(-1);
      return problems.length;
    };
    expect(await spoil('balances', 'balance')).toBeGreaterThan(0);
    expect(await spoil('balances', 'reserved')).toBeGreaterThan(0);
    expect(await spoil('postings', 'amount')).toBeGreaterThan(0);
    expect(await spoil('key_spend', 'held')).toBeGreaterThan(0);
    expect(await spoil('key_spend', 'spent')).toBeGreaterThan(0);
    expect(await spoil('network_totals', 'earned')).toBeGreaterThan(0);
    expect(await spoil('network_totals', 'active_accounts')).toBeGreaterThan(0);
    expect(await spoil('account_totals', 'served_tokens')).toBeGreaterThan(0);
    expect(await spoil('account_hours', 'requests')).toBeGreaterThan(0);
  });
});
