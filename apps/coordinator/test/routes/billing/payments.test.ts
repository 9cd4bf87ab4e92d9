import { randomUUID } from 'node:crypto';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { addKey, createAccount, newKeyText } from '../../../src/database/accounts/api-key-repository.js';
import type { JobRow } from '../../../src/database/tables/ledger.js';
import { PAYMENT_SCHEMAS, type UsageEntry } from '../../../src/routes/billing/payment-schemas.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness } from '../../support/harness.js';
import { settledJob } from '../../support/settled-job.js';

const MARCH = Date.UTC(2026, 2, 1);
const USAGE = '/v1/payments/usage';

interface Page {
  readonly usage: UsageEntry[];
  readonly next_cursor?: string | null;
}

describeDatabases('payments', (fresh) => {
  let harness: Harness;
  let accountId: string;
  let key: string;

  beforeAll(async () => {
    harness = await startHarnessOn(fresh);
  });
  beforeEach(async () => {
    ({ accountId, key } = await newAccount());
  });
  afterAll(() => harness.close());

  async function newAccount(): Promise<{ accountId: string; key: string }> {
    const { database } = harness.app;
    const account = await createAccount(database, 'someone', MARCH);
    const text = newKeyText();
    await addKey(database, { accountId: account, kind: 'api', text, now: MARCH });
    return { accountId: account, key: text };
  }

  function job(endedAt: number, more: Partial<JobRow> = {}): JobRow {
    const tokens = { prompt_tokens: 12, completion_tokens: 34, cost: 56, earned: 50, fee: 6 };
    return settledJob({
      account_id: accountId,
      reserved_at: endedAt - 1000,
      ended_at: endedAt,
      earner: 'system:fees',
      model: 'test/model-1',
      ...tokens,
      ...more,
    });
  }

  async function keep(...rows: readonly JobRow[]): Promise<void> {
    for (let start = 0; start < rows.length; start += 200) {
      await harness.app.database
        .insertInto('jobs')
        .values(rows.slice(start, start + 200))
        .execute();
    }
  }

  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(harness.url + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
  async function usage(query = ''): Promise<Page> {
    const response = await get(USAGE + query);
    expect([query, response.status]).toEqual([query, 200]);
    return (await response.json()) as Page;
  }
  const ids = (page: Page) => page.usage.map(({ request_id }) => request_id);

  it('report the balance, with and without money', async () => {
    const nothing = await get('/v1/payments/balance');
    expect(nothing.headers.get('cache-control')).toBe('no-store');
    expect(await nothing.json()).toEqual({
      balance_micro_usd: 0,
      balance_usd: '0.000000',
      withdrawable_micro_usd: 0,
      withdrawable_usd: '0.000000',
    });
    await harness.app.database
      .insertInto('balances')
      .values({ account: accountId, balance: 12_345_678, reserved: 1000, earned: 45_678 })
      .execute();
    const body = await (await get('/v1/payments/balance')).json();
    expect([...Compile(PAYMENT_SCHEMAS.Balance).Errors(body)]).toEqual([]);
    // Amounts reserved for running jobs are still part of the balance.
    expect(body).toEqual({
      balance_micro_usd: 12_345_678,
      balance_usd: '12.345678',
      withdrawable_micro_usd: 45_678,
      withdrawable_usd: '0.045678',
    });
  });

  it('require a key, and show only its account', async () => {
    await keep(job(MARCH), job(MARCH, { account_id: randomUUID() }));
    for (const path of ['/v1/payments/balance', USAGE]) {
      expect([path, (await fetch(harness.url + path)).status]).toEqual([path, 401]);
      expect([path, (await harness.get(path, 'service-wrong')).status]).toEqual([path, 401]);
      expect([path, (await harness.get(path, harness.adminKey)).status]).toEqual([path, 403]);
      expect([path, (await fetch(harness.url + path, { headers: { 'x-api-key': key } })).status]).toEqual([path, 200]);
    }
    expect((await usage()).usage).toHaveLength(1);
    const { key: other } = await newAccount();
    expect(await (await harness.get(USAGE, other)).json()).toEqual({ usage: [] });
  });

  it('show finished jobs in the format of the specification, newest first', async () => {
    const older = job(MARCH + 1);
    const newer = job(MARCH + 1_500_123, { model: 'other/model', prompt_tokens: 7, completion_tokens: 0, cost: 0, earned: 0, fee: 0 });
    const running = job(MARCH, { state: 'reserved', ended_at: null, cost: 0, earned: 0, fee: 0 });
    const failed = job(MARCH, { state: 'released', cost: 0, earned: 0, fee: 0 });
    await keep(older, running, newer, failed);
    const response = await get(USAGE);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('link')).toBeNull();
    const body = await response.json();
    expect([...Compile(PAYMENT_SCHEMAS.Usage).Errors(body)]).toEqual([]);
    expect(body).toEqual({
      usage: [
        {
          request_id: newer.job_id,
          model: 'other/model',
          prompt_tokens: 7,
          completion_tokens: 0,
          cost_micro_usd: 0,
          timestamp: '2026-03-01T00:25:00.123Z',
        },
        {
          request_id: older.job_id,
          model: 'test/model-1',
          prompt_tokens: 12,
          completion_tokens: 34,
          cost_micro_usd: 56,
          timestamp: '2026-03-01T00:00:00.001Z',
        },
      ],
    });
  });

  it('are paged without repeating or losing a job while new ones arrive', async () => {
    // Several entries with the same time, so that their order matters.
    const rows = Array.from({ length: 57 }, (_, index) => job(MARCH + Math.floor(index / 5)));
    await keep(...rows);
    const seen: string[] = [];
    let query = '?limit=10';
    for (;;) {
      const response = await get(USAGE + query);
      const page = (await response.json()) as Page;
      seen.push(...ids(page));
      await keep(job(MARCH + 1_000_000), job(Date.now()));
      if (page.next_cursor == null) {
        expect(response.headers.get('link')).toBeNull();
        break;
      }
      expect(page.usage).toHaveLength(10);
      const [, next = ''] = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '') ?? [];
      query = `?limit=10&cursor=${encodeURIComponent(page.next_cursor)}`;
      expect(next).toBe(USAGE + query);
    }
    expect(seen).toHaveLength(57);
    expect([...seen].sort()).toEqual(rows.map(({ job_id }) => job_id).sort());
    const times = new Map(rows.map((row) => [row.job_id, row.ended_at ?? 0]));
    const order = seen.map((id) => times.get(id) ?? 0);
    expect(order).toEqual([...order].sort((a, b) => b - a));
  });

  it('return 1000 jobs by default, and lead on to the rest', async () => {
    await keep(...Array.from({ length: 1003 }, (_, index) => job(MARCH + index)));
    const response = await get(`${USAGE}?model=test%2Fmodel-1`);
    const first = (await response.json()) as Page;
    expect(Object.keys(first)).toEqual(['usage']);
    expect(first.usage).toHaveLength(1000);
    const [, next = ''] = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '') ?? [];
    expect(next).toContain('model=test%2Fmodel-1');
    const second = (await (await get(next)).json()) as Page;
    expect(second.usage).toHaveLength(3);
    expect(second.next_cursor).toBeNull();
  });

  it('can be filtered by time and model', async () => {
    const day = 24 * 3_600_000;
    const [a, b, c, d] = [job(MARCH - 1), job(MARCH), job(MARCH + day - 1, { model: 'x' }), job(MARCH + day)] as [
      JobRow,
      JobRow,
      JobRow,
      JobRow,
    ];
    await keep(a, b, c, d);
    const found = async (query: string) => ids(await usage(query));
    expect(await found('?from=2026-03-01')).toEqual([d, c, b].map((row) => row.job_id));
    expect(await found('?to=2026-03-01')).toEqual([a.job_id]);
    expect(await found('?from=2026-03-01&to=2026-03-02')).toEqual([c.job_id, b.job_id]);
    expect(await found('?from=2026-03-01T01:00:00%2B01:00&to=2026-03-01T00:00:00.001Z')).toEqual([b.job_id]);
    expect(await found('?from=2026-03-01&to=2026-03-01')).toEqual([]);
    expect(await found('?model=x')).toEqual([c.job_id]);
    expect(await found('?model=x&from=2026-03-02')).toEqual([]);
    expect(await found("?model=x'%20or%201=1--")).toEqual([]);
  });

  it('refuse invalid parameters by name', async () => {
    for (const [param, query] of [
      ['limit', 'limit=0'],
      ['limit', 'limit=1001'],
      ['limit', 'limit=-1'],
      ['limit', 'limit=x'],
      ['limit', 'limit=1&limit=2'],
      ['cursor', 'cursor='],
      ['cursor', 'cursor=abc'],
      ['from', 'from=yesterday'],
      ['from', 'from=2026-02-30'],
      ['to', 'to=2026-03-01T00:00:00'],
      ['to', 'from=2026-03-02&to=2026-03-01'],
      ['model', 'model='],
      ['format', 'format=xml'],
      ['format', 'format=csv&format=csv'],
    ] as const) {
      const response = await get(`${USAGE}?${query}`);
      expect([query, response.status]).toEqual([query, 400]);
      expect([query, (await errorOf(response)).param]).toEqual([query, param]);
    }
    expect((await get(`${USAGE}?offset=-1&order=asc`)).status).toBe(200);
  });

  it('come as CSV', async () => {
    const [older, newer] = [
      job(MARCH, { model: 'a,"b"' }),
      job(MARCH + 1000, { model: '=cmd', images: 3, cost: 1, earned: 1, fee: 0 }),
    ] as [JobRow, JobRow];
    await keep(older, newer);
    const text = [
      'timestamp,request_id,model,prompt_tokens,completion_tokens,cost_micro_usd,cost_usd,images',
      `2026-03-01T00:00:01.000Z,${newer.job_id},'=cmd,12,34,1,0.000001,3`,
      `2026-03-01T00:00:00.000Z,${older.job_id},"a,""b""",12,34,56,0.000056,0`,
      '',
    ].join('\r\n');
    for (const response of [await get(`${USAGE}?format=csv`), await get(USAGE, { accept: 'text/csv' })]) {
      expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
      expect(response.headers.get('content-disposition')).toBe('attachment; filename="usage.csv"');
      expect(response.headers.get('vary')).toBe('accept');
      expect(response.headers.get('access-control-allow-credentials')).toBeNull();
      expect(await response.text()).toBe(text);
    }
    expect(await (await get(`${USAGE}?format=csv&limit=1`)).text()).toBe(`${text.split('\r\n').slice(0, 2).join('\r\n')}\r\n`);
    expect((await get(`${USAGE}?format=json`, { accept: 'text/csv' })).headers.get('content-type')).toContain('application/json');
  });

  it('come as complete CSV of any length', async () => {
    const rows = Array.from({ length: 2500 }, (_, index) => job(MARCH + Math.floor(index / 3)));
    await keep(...rows);
    const lines = (await (await get(`${USAGE}?format=csv`)).text()).trimEnd().split('\r\n').slice(1);
    expect(lines.map((line) => line.split(',')[1]).sort()).toEqual(rows.map(({ job_id }) => job_id).sort());
    expect((await (await get(`${USAGE}?format=csv&limit=1000`)).text()).trimEnd().split('\r\n')).toHaveLength(1001);
  });
});
