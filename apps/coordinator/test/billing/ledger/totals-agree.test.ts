import { randomUUID } from 'node:crypto';
import type { Leaderboard, Stats, Totals } from '@inference/formats';
import type { JobId, ProviderId } from '@inference/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Ledger } from '../../../src/billing/ledger/ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { addKey, createAccount, newKeyText } from '../../../src/database/accounts/api-key-repository.js';
import { pruneHistory } from '../../../src/database/ledger/prune-history.js';
import type { JobRow } from '../../../src/database/tables/ledger.js';
import type { UsageEntry } from '../../../src/routes/billing/payment-schemas.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';
import { type Harness, startHarness } from '../../support/harness.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const DEPOSIT = microUsd(50_000_000);
const CLAIMED = 'aa'.repeat(16) as ProviderId;
const UNCLAIMED = 'bb'.repeat(16) as ProviderId;

interface Customer {
  readonly accountId: string;
  readonly key: string;
}

describeDatabases('settled usage', (fresh) => {
  let base: TestDatabase;
  let harness: Harness;
  let ledger: Ledger;
  let customers: readonly Customer[];
  let owner: Customer;
  /** The middle of a minute in the first half of an hour. */
  const now = Math.floor(Date.now() / HOUR) * HOUR + 20 * MINUTE + 30_000;

  beforeEach(async () => {
    base = await fresh();
    harness = await startHarness({ now: () => now, config: base.config });
    // A second ledger of the same SQLite database would take these reservations for those of a dead process.
    ledger = harness.app.ledger;
    customers = [await newCustomer(), await newCustomer()];
    owner = await newCustomer();
    await ledger.linkProvider(CLAIMED, owner.accountId, now - 60 * DAY);
  });
  afterEach(async () => {
    await harness.close();
    await base.remove();
  });

  async function newCustomer(): Promise<Customer> {
    const { database } = harness.app;
    const accountId = await createAccount(database, 'someone', now);
    const key = newKeyText();
    await addKey(database, { accountId, kind: 'api', text: key, now });
    await ledger.deposit({ eventId: randomUUID(), accountId, amount: DEPOSIT, source: 'development', at: now - 60 * DAY });
    return { accountId, key };
  }

  /** End times of jobs, oldest first: inside and outside of every window, and at the limits of minutes. */
  const ENDS = [40 * DAY, 31 * DAY, 29 * DAY, 8 * DAY, 6 * DAY, 26 * HOUR, 23 * HOUR, 2 * HOUR, 31 * MINUTE]
    .map((ago) => now - ago)
    .concat([29, 29, 7].map((minutes) => Math.floor(now / MINUTE) * MINUTE - minutes * MINUTE))
    .concat([Math.floor(now / MINUTE) * MINUTE - 1, Math.floor(now / MINUTE) * MINUTE, now]);

  async function runJobs(): Promise<void> {
    let index = 0;
    for (const at of ENDS) {
      for (const customer of customers) {
        const jobId = randomUUID() as JobId;
        const provider = index++ % 3 === 0 ? UNCLAIMED : CLAIMED;
        const rates = { promptPerMillion: microUsd(70_001), completionPerMillion: microUsd(300_003), perImage: microUsd(0) };
        const reserved = await ledger.reserve({
          jobId,
          accountId: customer.accountId,
          apiKeyId: `key of ${customer.accountId}`,
          keySpendLimit: null,
          model: index % 2 === 0 ? 'test/even' : 'test/odd',
          endpoint: '/v1/chat/completions',
          price: { id: 'price', model: 'test/model-1', ...rates, validFrom: 0 },
          maxPromptTokens: 10_000,
          maxCompletionTokens: 8192,
          at,
        });
        expect(reserved.kind).toBe('reserved');
        if (index % 7 === 0) {
          expect(await ledger.release(jobId, at)).toBe(true);
          continue;
        }
        const usage = { promptTokens: 100 + index * 13, completionTokens: 7 + index * 29, hiddenTokens: 0, cachedTokens: 0 };
        expect(await ledger.settle({ jobId, providerId: provider, ...usage, at })).toMatchObject({ kind: 'settled' });
      }
    }
  }

  async function body<T>(path: string, key: string | null = null): Promise<T> {
    const response = await harness.get(path, key);
    expect([path, response.status]).toEqual([path, 200]);
    return (await response.json()) as T;
  }
  const settled = async (): Promise<readonly JobRow[]> =>
    harness.app.database.selectFrom('jobs').selectAll().where('state', '=', 'settled').execute();
  const sum = (rows: readonly JobRow[], of: (row: JobRow) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const tokensOf = (row: JobRow): number => row.prompt_tokens + row.completion_tokens;
  const endOf = (row: JobRow): number => row.ended_at ?? 0;

  it('equals the sum of usage entries and the loss of the balance', async () => {
    await runJobs();
    const rows = await settled();
    for (const { accountId, key } of customers) {
      const { usage } = await body<{ usage: UsageEntry[] }>('/v1/payments/usage', key);
      const own = rows.filter((row) => row.account_id === accountId);
      expect(usage.map(({ request_id }) => request_id).sort()).toEqual(own.map(({ job_id }) => job_id).sort());
      const spent = usage.reduce((total, { cost_micro_usd }) => total + cost_micro_usd, 0);
      expect(spent).toBeGreaterThan(0);
      const balance = await body<{ balance_micro_usd: number; withdrawable_micro_usd: number }>('/v1/payments/balance', key);
      expect(balance.balance_micro_usd).toBe(DEPOSIT - spent);
      expect(balance.withdrawable_micro_usd).toBe(0);
    }
    const earned = sum(
      rows.filter((row) => row.provider_id === CLAIMED),
      (row) => row.earned,
    );
    expect(await body('/v1/payments/balance', owner.key)).toMatchObject({
      balance_micro_usd: DEPOSIT + earned,
      withdrawable_micro_usd: earned,
    });
  });

  it('equals the statistics', async () => {
    await runJobs();
    const rows = await settled();
    const stats = await body<Stats>('/v1/stats');
    expect(stats).toMatchObject({
      total_requests: rows.length,
      total_prompt_tokens: sum(rows, (row) => row.prompt_tokens),
      total_completion_tokens: sum(rows, (row) => row.completion_tokens),
      total_tokens: sum(rows, tokensOf),
      avg_tokens_per_request: sum(rows, tokensOf) / rows.length,
    });
    for (const bucket of stats.time_series) {
      const start = Date.parse(bucket.timestamp);
      const within = rows.filter((row) => endOf(row) >= start && endOf(row) < start + MINUTE);
      expect(bucket).toMatchObject({
        requests: within.length,
        prompt_tokens: sum(within, (row) => row.prompt_tokens),
        completion_tokens: sum(within, (row) => row.completion_tokens),
        total_tokens: sum(within, tokensOf),
      });
    }
    expect(
      stats.time_series.filter(({ requests }) => requests > 0).map(({ timestamp }) => (now - 30_000 - Date.parse(timestamp)) / MINUTE),
    ).toEqual([29, 7, 1, 0]);
  });

  it('equals totals and leaderboard in every window', async () => {
    await runJobs();
    const rows = await settled();
    for (const [window, hours] of [
      ['24h', 24],
      ['7d', 7 * 24],
      ['30d', 30 * 24],
      ['all', Number.POSITIVE_INFINITY],
    ] as const) {
      const begin = (Math.floor(now / HOUR) - hours) * HOUR;
      const within = rows.filter((row) => endOf(row) >= begin);
      const earners = new Set(within.map(({ earner }) => earner));
      const totals = await body<Totals>(`/v1/network/totals?window=${window}`);
      expect(totals).toEqual({
        window,
        earnings_micro_usd: sum(within, (row) => row.earned),
        tokens: sum(within, tokensOf),
        jobs: within.length,
        active_accounts: new Set([...within.map((row) => row.account_id), ...earners]).size,
        updated_at: new Date(now).toISOString(),
      });
      const board = await body<Leaderboard>(`/v1/leaderboard?window=${window}&metric=tokens`);
      const expected = [...earners].map((earner) => {
        const own = within.filter((row) => row.earner === earner);
        return { earnings_micro_usd: sum(own, (row) => row.earned), tokens: sum(own, tokensOf), jobs: own.length };
      });
      expect(board.entries.map(({ rank, pseudonym, ...counts }) => counts)).toEqual(expected.sort((a, b) => b.tokens - a.tokens));
      expect(board.entries).toHaveLength(2);
    }
  });

  it('stays in every public sum when old usage entries are removed', async () => {
    await runJobs();
    const paths = [
      '/v1/stats',
      ...['24h', '7d', '30d', 'all'].flatMap((window) => [`/v1/network/totals?window=${window}`, `/v1/leaderboard?window=${window}`]),
    ];
    const balances = (): Promise<unknown[]> => Promise.all([...customers, owner].map(({ key }) => body('/v1/payments/balance', key)));
    const [customer] = customers as [Customer];
    const before = [await Promise.all(paths.map((path) => body(path))), await balances()];
    const usage = (await body<{ usage: UsageEntry[] }>('/v1/payments/usage', customer.key)).usage;
    expect((await pruneHistory(harness.app.database, now - 10 * DAY)).jobs).toBeGreaterThan(0);
    // Restarts the coordinator, so that no cache contains deleted rows.
    const { dataDir } = harness;
    await ledger.close();
    await harness.app.close(0);
    harness = await startHarness({ now: () => now, config: { dataDir, ...base.config } });
    // A second ledger of the same SQLite database would take these reservations for those of a dead process.
    ledger = harness.app.ledger;
    expect([await Promise.all(paths.map((path) => body(path))), await balances()]).toEqual(before);
    const left = (await body<{ usage: UsageEntry[] }>('/v1/payments/usage', customer.key)).usage;
    expect(left).toEqual(usage.filter(({ timestamp }) => Date.parse(timestamp) >= now - 10 * DAY));
    expect(left.length).toBeLessThan(usage.length);
    expect(left.length).toBeGreaterThan(0);
  });
});
