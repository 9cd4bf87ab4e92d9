import { STATS_SCHEMAS } from '@inference/formats';
import { Compile } from 'typebox/compile';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Activity, StatsWindow } from '../../../src/database/tables/ledger.js';
import type { Database } from '../../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';
import { errorOf, type Harness, MODEL, startHarness } from '../../support/harness.js';

const MINUTE = 60_000;
const NOTHING: Activity = {
  requests: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  images: 0,
  spent: 0,
  served_jobs: 0,
  served_tokens: 0,
  earned: 0,
};

/** Member names of each response in the specification. Responses must have exactly these. */
const SPECIFIED = {
  stats: [
    'total_requests total_prompt_tokens total_completion_tokens total_tokens avg_tokens_per_request active_providers total_gpu_cores',
    'total_cpu_cores total_memory_gb total_bandwidth_gbs providers models time_series',
  ].join(' '),
  provider: 'id chip chip_family memory_gb gpu_cores status trust_level decode_tps requests_served tokens_generated models current_model',
  model: 'id providers',
  bucket: 'timestamp requests prompt_tokens completion_tokens total_tokens',
  leaderboard: 'metric window entries updated_at',
  entry: 'rank pseudonym earnings_micro_usd tokens jobs',
  totals: 'window earnings_micro_usd tokens jobs active_accounts updated_at',
};

function expectMembers(value: unknown, names: string): void {
  expect(Object.keys(value as object).sort()).toEqual(names.split(' ').sort());
}

interface Bucket {
  timestamp: string;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}
interface Entry {
  rank: number;
  pseudonym: string;
  earnings_micro_usd: number;
  tokens: number;
  jobs: number;
}

describeDatabases('public statistics', (fresh) => {
  let base: TestDatabase;
  let harness: Harness;
  /** Clock of the coordinator: real until a test sets it. */
  let clock: () => number;

  async function start(): Promise<Harness> {
    return startHarness({ now: () => clock(), config: base.config });
  }

  beforeEach(async () => {
    clock = Date.now;
    base = await fresh();
    harness = await start();
  });
  afterEach(async () => {
    await harness.close();
    await base.remove();
  });

  const get = (path: string) => harness.get(path, null);
  async function body<T = Record<string, unknown>>(path: string): Promise<T> {
    const response = await get(path);
    expect([path, response.status]).toEqual([path, 200]);
    return (await response.json()) as T;
  }

  it('start empty', async () => {
    const stats = await body<{ time_series: Bucket[] }>('/v1/stats');
    expectMembers(stats, SPECIFIED.stats);
    expect(stats).toMatchObject({
      total_requests: 0,
      total_tokens: 0,
      avg_tokens_per_request: 0,
      active_providers: 0,
      total_gpu_cores: 0,
      total_cpu_cores: 0,
      total_memory_gb: 0,
      total_bandwidth_gbs: 0,
      providers: [],
      models: [],
    });
    expect(stats.time_series).toHaveLength(30);
    expect(await body('/v1/leaderboard')).toMatchObject({ metric: 'earnings', window: 'all', entries: [] });
    const totals = await body('/v1/network/totals');
    expectMembers(totals, SPECIFIED.totals);
    expect(totals).toMatchObject({ window: 'all', earnings_micro_usd: 0, tokens: 0, jobs: 0, active_accounts: 0 });
  });

  it('show a bucket for each of the last 30 minutes, exact at the edges of the minutes', async () => {
    const minute = Math.floor(Date.now() / MINUTE);
    const row = (ago: number) => ({ minute: minute - ago, requests: ago + 1, prompt_tokens: 100 + ago, completion_tokens: 10 * ago });
    await harness.app.database.insertInto('minute_totals').values([30, 29, 7, 0].map(row)).execute();
    // Time is the last millisecond of a minute, then the first millisecond of the next.
    clock = () => minute * MINUTE + 59_999;
    const { time_series } = await body<{ time_series: Bucket[] }>('/v1/stats');
    expect(time_series.map(({ timestamp }) => Date.parse(timestamp) / MINUTE)).toEqual(
      Array.from({ length: 30 }, (_, index) => minute - 29 + index),
    );
    for (const bucket of time_series) {
      expectMembers(bucket, SPECIFIED.bucket);
      expect(bucket.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:00Z$/);
    }
    expect(time_series[0]).toMatchObject({ requests: 30, prompt_tokens: 129, completion_tokens: 290, total_tokens: 419 });
    expect(time_series[22]).toMatchObject({ requests: 8, prompt_tokens: 107, completion_tokens: 70, total_tokens: 177 });
    expect(time_series[29]).toMatchObject({ requests: 1, prompt_tokens: 100, completion_tokens: 0, total_tokens: 100 });
    expect(time_series.reduce((sum, { requests }) => sum + requests, 0)).toBe(30 + 8 + 1);

    clock = () => (minute + 2) * MINUTE;
    const later = (await body<{ time_series: Bucket[] }>('/v1/stats')).time_series;
    expect(Date.parse(later[29]?.timestamp ?? '')).toBe((minute + 2) * MINUTE);
    expect(later[27]).toMatchObject({ requests: 1 });
    expect(later.reduce((sum, { requests }) => sum + requests, 0)).toBe(8 + 1);
  });

  it('show connected providers and their models', async () => {
    const hardware = (chip_family: string, gpu_cores: number, bandwidth_gbs: number) => ({
      register: (register: object) => ({ ...register, hardware: { chip_family, cpu_cores: 12, gpu_cores, bandwidth_gbs } }) as never,
    });
    const first = await harness.provider({ ...hardware('M4', 40, 546.1), models: [MODEL, 'test/other'] });
    const second = await harness.provider({ ...hardware('M3', 10, 100.2), models: [MODEL] });
    first.send({ type: 'load', active_jobs: 0, decode_tps: 61.5 });
    second.send({ type: 'models', models: [] });
    await harness.until(() => [...harness.app.providers.snapshots()].some(({ models }) => models.length === 0));
    expect((await harness.chat({ model: 'test/other' })).status).toBe(200);

    const stats = await body<{ providers: Record<string, unknown>[] } & Record<string, unknown>>('/v1/stats');
    expect([...Compile(STATS_SCHEMAS.Stats).Errors(stats)]).toEqual([]);
    expectMembers(stats, SPECIFIED.stats);
    expect(stats).toMatchObject({ active_providers: 2, total_gpu_cores: 50, total_cpu_cores: 24, total_bandwidth_gbs: 646.3 });
    expect(stats.total_memory_gb).toBe(stats.providers.reduce((sum, provider) => sum + Number(provider.memory_gb), 0));
    for (const provider of stats.providers) expectMembers(provider, SPECIFIED.provider);
    for (const model of stats.models as object[]) expectMembers(model, SPECIFIED.model);
    expect(stats.models).toEqual([
      { id: MODEL, providers: 1 },
      { id: 'test/other', providers: 1 },
    ]);
    const byId = new Map(stats.providers.map((provider) => [provider.id, provider]));
    expect(byId.get(first.providerId)).toMatchObject({
      chip_family: 'M4',
      gpu_cores: 40,
      status: 'online',
      trust_level: 'self_signed',
      decode_tps: 61.5,
      models: [MODEL, 'test/other'],
      current_model: 'test/other',
      requests_served: 1,
    });
    expect(Number(byId.get(first.providerId)?.tokens_generated)).toBeGreaterThan(0);
    expect(byId.get(second.providerId)).toMatchObject({ models: [], current_model: '', decode_tps: 0, requests_served: 0 });
  });

  it('survive a restart', async () => {
    await addToNetwork(harness.app.database, 'all', {
      requests: 3,
      prompt_tokens: 10,
      completion_tokens: 11,
      active_accounts: 2,
      earned: 9,
    });
    const { dataDir } = harness;
    await harness.app.close(0);
    const config = { dataDir, ...base.config };
    harness = await startHarness({ now: () => clock(), config });
    expect(await body('/v1/stats')).toMatchObject({
      total_requests: 3,
      total_prompt_tokens: 10,
      total_completion_tokens: 11,
      total_tokens: 21,
      avg_tokens_per_request: 7,
    });
    expect(await body('/v1/network/totals')).toMatchObject({ jobs: 3, tokens: 21, active_accounts: 2, earnings_micro_usd: 9 });
  });

  it('are cached as long as the specification says, and report their age', async () => {
    const start = Date.now();
    clock = () => start;
    for (const [path, seconds] of [
      ['/v1/stats', 60],
      ['/v1/network/totals', 60],
      ['/v1/leaderboard', 300],
    ] as const) {
      clock = () => start;
      const first = await get(path);
      expect(first.headers.get('cache-control')).toBe(`public, max-age=${seconds}`);
      expect(first.headers.get('age')).toBe('0');
      const text = await first.text();
      await addToNetwork(harness.app.database, 'all', { requests: 1, prompt_tokens: 1 });
      await addServed(harness.app.database, 'all', `account of ${path}`, { served_jobs: 1, earned: 1 });
      clock = () => start + seconds * 1000 - 1;
      const kept = await get(path);
      expect(kept.headers.get('age')).toBe(String(seconds - 1));
      expect(kept.headers.get('cache-control')).toBe(`public, max-age=${seconds}`);
      expect(await kept.text()).toBe(text);
      clock = () => start + seconds * 1000;
      const renewed = await get(path);
      expect(renewed.headers.get('age')).toBe('0');
      expect(await renewed.text()).not.toBe(text);
    }
  });

  it('are cached per parameter value', async () => {
    await addToNetwork(harness.app.database, '24h', { requests: 1, prompt_tokens: 5, earned: 2, active_accounts: 1 });
    await addToNetwork(harness.app.database, 'all', { requests: 9, prompt_tokens: 50, earned: 20, active_accounts: 4 });
    expect(await body('/v1/network/totals?window=24h')).toMatchObject({ window: '24h', jobs: 1, tokens: 5, earnings_micro_usd: 2 });
    expect(await body('/v1/network/totals?window=all')).toMatchObject({ window: 'all', jobs: 9, tokens: 50, active_accounts: 4 });
    expect(await body('/v1/network/totals?window=7d')).toMatchObject({ window: '7d', jobs: 0, active_accounts: 0 });
  });

  it('rank providers by each metric and window, with a stable order of equals', async () => {
    const { database } = harness.app;
    await addServed(database, 'all', 'a', { earned: 100, served_tokens: 10, served_jobs: 2 });
    await addServed(database, 'all', 'b', { earned: 50, served_tokens: 70, served_jobs: 2 });
    await addServed(database, 'all', 'c', { earned: 50, served_tokens: 20, served_jobs: 9 });
    await addServed(database, '7d', 'c', { earned: 7, served_tokens: 8, served_jobs: 1 });
    // Accounts that only buy inference are on no leaderboard.
    await addServed(database, 'all', 'consumer', { requests: 1000, spent: 1_000_000 });

    const board = await body<{ entries: Entry[] }>('/v1/leaderboard');
    expect([...Compile(STATS_SCHEMAS.Leaderboard).Errors(board)]).toEqual([]);
    expectMembers(board, SPECIFIED.leaderboard);
    for (const entry of board.entries) expectMembers(entry, SPECIFIED.entry);
    expect(board.entries.map(({ rank, earnings_micro_usd, tokens, jobs }) => [rank, earnings_micro_usd, tokens, jobs])).toEqual([
      [1, 100, 10, 2],
      [2, 50, 70, 2],
      [3, 50, 20, 9],
    ]);
    const [a, b, c] = board.entries.map(({ pseudonym }) => pseudonym);
    const order = async (query: string) =>
      (await body<{ entries: Entry[] }>(`/v1/leaderboard?${query}`)).entries.map(({ pseudonym }) => pseudonym);
    expect(await order('metric=tokens')).toEqual([b, c, a]);
    expect(await order('metric=jobs')).toEqual([c, a, b]);
    expect(await order('metric=jobs&limit=2')).toEqual([c, a]);
    expect(await order('window=7d')).toEqual([c]);
    expect(await order('window=24h')).toEqual([]);
  });

  it('list 50 leaders by default, and 200 at most', async () => {
    const rows = Array.from({ length: 210 }, (_, index) => ({
      ...NOTHING,
      window: 'all' as const,
      account: `account-${index}`,
      served_jobs: 1,
      earned: index,
    }));
    await harness.app.database.insertInto('account_totals').values(rows).execute();
    for (const [query, length] of [
      ['', 50],
      ['?limit=1', 1],
      ['?limit=200', 200],
    ] as const) {
      const { entries } = await body<{ entries: Entry[] }>(`/v1/leaderboard${query}`);
      expect(entries).toHaveLength(length);
      expect(entries[0]).toMatchObject({ rank: 1, earnings_micro_usd: 209 });
      expect(entries.at(-1)).toMatchObject({ rank: length, earnings_micro_usd: 210 - length });
    }
  });

  it('show accounts only by pseudonyms, stable over restarts and across coordinators', async () => {
    const account = '5f0c8a34-6f7e-4f0e-9c55-0d6d1c7a9b10';
    await addServed(harness.app.database, 'all', account, { served_jobs: 1, earned: 1 });
    await addServed(harness.app.database, 'all', 'provider:00112233445566778899aabbccddeeff', { served_jobs: 1, earned: 2 });
    const first = await (await get('/v1/leaderboard')).text();
    expect(first).not.toContain(account.slice(0, 8));
    expect(first).not.toContain('00112233');
    const names = (text: string) => (JSON.parse(text) as { entries: Entry[] }).entries.map(({ pseudonym }) => pseudonym);
    expect(new Set(names(first)).size).toBe(2);

    if ('url' in base.target) {
      const other = await startHarness({ config: { databaseUrl: base.target.url } });
      expect(names(await (await other.get('/v1/leaderboard', null)).text())).toEqual(names(first));
      await other.close();
    }
    const { dataDir } = harness;
    await harness.app.close(0);
    harness = await startHarness({ config: { dataDir, ...base.config } });
    expect(names(await (await get('/v1/leaderboard')).text())).toEqual(names(first));
  });
});

describe('routes of public statistics', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness();
  });
  afterAll(() => harness.close());

  const get = (path: string) => harness.get(path, null);

  it('refuse invalid parameters by name, and ignore unknown parameters', async () => {
    for (const [path, param] of [
      ['/v1/leaderboard?metric=score', 'metric'],
      ['/v1/leaderboard?window=1y', 'window'],
      ['/v1/leaderboard?limit=0', 'limit'],
      ['/v1/leaderboard?limit=201', 'limit'],
      ['/v1/leaderboard?limit=ten', 'limit'],
      ['/v1/leaderboard?limit=5&limit=5', 'limit'],
      ['/v1/network/totals?window=', 'window'],
      ['/v1/network/totals?window=all&window=all', 'window'],
    ] as const) {
      const response = await get(path);
      expect([path, response.status]).toEqual([path, 400]);
      expect(response.headers.get('cache-control')).toBeNull();
      const error = await errorOf(response);
      expect(error).toMatchObject({ param, type: 'invalid_request_error' });
      expect(error.message).toContain(param);
    }
    for (const path of ['/v1/stats?window=x', '/v1/leaderboard?color=red', '/v1/network/totals?limit=0'])
      expect((await get(path)).status).toBe(200);
  });

  it('are readable by pages of any origin, and by HEAD', async () => {
    for (const path of ['/v1/stats', '/v1/leaderboard', '/v1/network/totals', '/v1/providers/attestation', '/openapi.json']) {
      const response = await fetch(harness.url + path, { headers: { origin: 'https://example.org' } });
      expect([path, response.headers.get('access-control-allow-origin')]).toEqual([path, '*']);
      expect(response.headers.get('access-control-allow-credentials')).toBeNull();
      const text = await response.text();
      const head = await fetch(harness.url + path, { method: 'HEAD' });
      expect([path, head.status, await head.text()]).toEqual([path, 200, '']);
      expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
      const preflight = await fetch(harness.url + path, {
        method: 'OPTIONS',
        headers: { origin: 'https://example.org', 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-anything' },
      });
      expect([path, preflight.status]).toEqual([path, 204]);
      expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
      expect(preflight.headers.get('access-control-allow-methods')).toBe('GET, HEAD, OPTIONS');
    }
    const refused = await fetch(`${harness.url}/v1/leaderboard?limit=0`, { headers: { origin: 'https://example.org' } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([400, '*']);
  });

  it('are not alone in CORS: keyed routes allow it without credentials, admin routes do not', async () => {
    for (const path of ['/v1/models', '/v1/payments/balance', '/v1/payments/usage', '/v1/receipts/x', '/admin/v1/providers']) {
      for (const method of ['GET', 'OPTIONS']) {
        const headers = { origin: 'https://example.org', authorization: `Bearer ${harness.apiKey}` };
        const response = await fetch(harness.url + path, { method, headers });
        const origins = path.startsWith('/v1/') ? '*' : null;
        expect([method, path, response.headers.get('access-control-allow-origin')]).toEqual([method, path, origins]);
        expect(response.headers.get('access-control-allow-credentials')).toBeNull();
        if (method === 'OPTIONS') expect([path, response.status]).toEqual([path, 405]);
      }
    }
  });

  it('need no credentials, and ignore them', async () => {
    for (const path of ['/v1/stats', '/v1/leaderboard', '/v1/network/totals']) {
      expect((await harness.get(path, 'service-wrong')).status).toBe(200);
      const posted = await fetch(harness.url + path, { method: 'POST', body: '{}' });
      expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
    }
  });
});

async function addToNetwork(database: Database, window: StatsWindow, more: Partial<Activity & { active_accounts: number }>): Promise<void> {
  const row = await database.selectFrom('network_totals').selectAll().where('window', '=', window).executeTakeFirstOrThrow();
  const sums = Object.entries(more).map(([name, value]) => [name, Number(row[name as keyof typeof row]) + value]);
  await database.updateTable('network_totals').set(Object.fromEntries(sums)).where('window', '=', window).execute();
}

async function addServed(database: Database, window: StatsWindow, account: string, activity: Partial<Activity>): Promise<void> {
  await database
    .insertInto('account_totals')
    .values({ ...NOTHING, window, account, ...activity })
    .execute();
}
