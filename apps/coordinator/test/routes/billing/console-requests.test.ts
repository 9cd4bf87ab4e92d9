/** Requests of an account in the console: sorted and paged, failed ones, one by its id, and usage by hour. */
import { randomUUID } from 'node:crypto';
import {
  type ConsoleFailedRequest,
  ConsoleFailedRequestPageSchema,
  ConsoleRequestSchema,
  ConsoleUsageHoursSchema,
  type ConsoleUsagePage,
  ConsoleUsagePageSchema,
} from '@inference/formats';
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { FailedRequestRepository } from '../../../src/database/failed-request-repository.js';
import { Browser } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, MODEL, NO_RATE_LIMITS } from '../../support/harness.js';
import { settledJob } from '../../support/settled-job.js';

describeDatabases('requests in the console', (fresh) => {
  let harness: Harness;
  let person: Browser;
  let accountId: string;
  let people = 0;

  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS } });
  });
  afterAll(() => harness.close());
  beforeEach(async () => {
    person = await newPerson();
    accountId = ((await (await person.get('/console/v1/me')).json()) as { id: string }).id;
  });

  const newPerson = async (): Promise<Browser> => {
    const browser = new Browser(harness.url);
    await browser.signUp(`requests-${++people}@example.com`);
    return browser;
  };
  const AT = Date.UTC(2026, 0, 31, 12);
  const RANGE = 'from=2026-01-01&to=2026-01-31';
  const settle = async (jobs: readonly Parameters<typeof settledJob>[0][]): Promise<void> => {
    await harness.app.database
      .insertInto('jobs')
      .values(jobs.map((job) => settledJob(job)))
      .execute();
  };
  const chat = (apiKey: string, body: Record<string, unknown> = {}): Promise<Response> =>
    harness.chat(body, { headers: { authorization: `Bearer ${apiKey}` } });
  const failures = async (browser = person, query = ''): Promise<readonly ConsoleFailedRequest[]> =>
    (await bodyAs(ConsoleFailedRequestPageSchema, await browser.get(`/console/v1/usage/failed${query}`))).data;

  it('are sorted by each column in both directions, page by page', async () => {
    const base = { account_id: accountId, reserved_at: AT };
    const jobs = [
      { ...base, job_id: randomUUID(), model: 'b', prompt_tokens: 5, cost: 30, earned: 30, fee: 0, ended_at: AT + 10 },
      { ...base, job_id: randomUUID(), model: 'a', prompt_tokens: 5, cost: 10, earned: 10, fee: 0, ended_at: AT + 20 },
      { ...base, job_id: randomUUID(), model: 'a', prompt_tokens: 90, cost: 20, earned: 20, fee: 0, ended_at: AT + 20 },
      {
        ...base,
        job_id: randomUUID(),
        model: 'c',
        prompt_tokens: 1,
        cost: 20,
        earned: 20,
        fee: 0,
        ended_at: AT + 30,
        reserved_at: AT + 29,
      },
      { ...base, job_id: randomUUID(), model: 'a', prompt_tokens: 90, cost: 20, earned: 20, fee: 0, ended_at: AT + 40 },
    ];
    await settle(jobs);
    const values = {
      time: (job: (typeof jobs)[number]) => job.ended_at,
      model: (job: (typeof jobs)[number]) => job.model,
      tokens: (job: (typeof jobs)[number]) => job.prompt_tokens,
      cost: (job: (typeof jobs)[number]) => job.cost,
      latency: (job: (typeof jobs)[number]) => job.ended_at - job.reserved_at,
    };
    const inOrder = (a: number | string, b: number | string): number => (a < b ? -1 : a > b ? 1 : 0);
    for (const [sort, value] of Object.entries(values)) {
      const ascending = jobs.toSorted((a, b) => inOrder(value(a), value(b)) || inOrder(a.job_id, b.job_id)).map(({ job_id }) => job_id);
      expect(await idsOfAllPages(`&sort=${sort}&order=asc`), sort).toEqual(ascending);
      expect(await idsOfAllPages(`&sort=${sort}&order=desc`), sort).toEqual(ascending.toReversed());
    }
  });

  async function idsOfAllPages(query: string): Promise<string[]> {
    const ids: string[] = [];
    for (let cursor = ''; ; ) {
      const answer = await person.get(`/console/v1/usage?${RANGE}&limit=2${query}${cursor}`);
      const page: ConsoleUsagePage = await bodyAs(ConsoleUsagePageSchema, answer);
      ids.push(...page.data.map(({ request_id }) => request_id));
      if (page.next_cursor === null) return ids;
      cursor = `&cursor=${page.next_cursor}`;
    }
  }

  it('refuse invalid parameters with their names', async () => {
    const rows = [1, 2].map((late) => ({ account_id: accountId, reserved_at: AT, ended_at: AT + late }));
    await settle(rows);
    const first = await person.get(`/console/v1/usage?${RANGE}&limit=1&sort=cost`);
    const { next_cursor: ofCost } = await bodyAs(ConsoleUsagePageSchema, first);
    expect(ofCost).not.toBeNull();
    const forged = Buffer.from(JSON.stringify(['time', 'desc', 'now', 'x'])).toString('base64url');
    for (const [query, param] of [
      ['/usage?sort=prompt', 'sort'],
      ['/usage?order=up', 'order'],
      ['/usage?limit=0', 'limit'],
      ['/usage?cursor=abc', 'cursor'],
      [`/usage?cursor=${forged}`, 'cursor'],
      [`/usage?sort=tokens&cursor=${ofCost}`, 'cursor'],
      [`/usage?sort=cost&order=asc&cursor=${ofCost}`, 'cursor'],
      ['/usage/failed?limit=many', 'limit'],
      ['/usage/hours?from=2026-01-01&to=2026-02-15', 'from'],
      ['/usage/hours?to=tomorrow', 'to'],
    ] as const) {
      const answer = await person.get(`/console/v1${query}`);
      expect(answer.status, query).toBe(400);
      expect((await errorOf(answer)).param, query).toBe(param);
    }
    const hours = '/console/v1/usage/hours?from=2026-01-01&to=2026-';
    expect((await person.get(`${hours}01-31`)).status).toBe(200);
    expect((await errorOf(await person.get(`${hours}02-01`))).message).toBe('from and to must cover at most 31 days for hours.');
  });

  it('are shown one by one to their account alone', async () => {
    const job_id = randomUUID();
    await settle([{ job_id, account_id: accountId, reserved_at: AT, ended_at: AT + 1500, cached_tokens: 4, hidden_tokens: 7 }]);
    const path = `/console/v1/usage/requests/${job_id}`;
    expect(await bodyAs(ConsoleRequestSchema, await person.get(path))).toMatchObject({
      state: 'completed',
      request_id: job_id,
      latency_ms: 1500,
      prompt_tokens: 10,
      cached_tokens: 4,
      completion_tokens: 20,
      hidden_tokens: 7,
      cost_micro_usd: 50,
      provider_id: 'machine-1',
    });
    const other = await newPerson();
    const refused = await other.get(path);
    expect(refused.status).toBe(404);
    expect((await errorOf(refused)).param).toBe('request_id');
    expect((await new Browser(harness.url).get(path)).status).toBe(401);
    expect((await person.get(`/console/v1/usage/requests/${randomUUID()}`)).status).toBe(404);
  });

  it('that failed are listed with code and meaning, without text of the request', async () => {
    const { secret, id } = await person.newKey({ name: 'laptop' });
    expect((await chat(secret, { model: 'a secret name' })).status).toBe(404);
    const provider = await harness.provider({ onJob: (job) => job.fail({ code: 'engine_failed' }) });
    expect((await chat(secret)).status).toBe(402);
    await person.post('/console/v1/deposits/development', { amount_micro_usd: 1_000_000 });
    const failed = await chat(secret, { messages: [{ role: 'user', content: 'a secret prompt' }] });
    expect(failed.status).toBe(502);

    const list = await failures();
    const key = { id, name: 'laptop' };
    expect(list).toMatchObject([
      { model: MODEL, key, provider_id: provider.providerId, end_to_end: false, error: { code: 'provider_failed', status: 502 } },
      { model: MODEL, key, provider_id: null, error: { code: 'insufficient_quota', status: 402 } },
      { model: null, key, provider_id: null, error: { code: 'model_not_found', status: 404 } },
    ]);
    expect(list.map(({ error }) => error.message)).not.toContain('');
    expect(JSON.stringify(await harness.app.database.selectFrom('failed_requests').selectAll().execute())).not.toContain('secret');

    const pages = await person.get('/console/v1/usage/failed?limit=2');
    const { data, next_cursor } = await bodyAs(ConsoleFailedRequestPageSchema, pages);
    expect(data).toEqual(list.slice(0, 2));
    expect(await failures(person, `?limit=2&cursor=${next_cursor}`)).toEqual(list.slice(2));
    expect(await failures(person, `?model=${MODEL}&key=${id}`)).toHaveLength(2);
    expect(await failures(person, '?key=playground')).toEqual([]);
    expect(await failures(person, '?from=2026-01-01&to=2026-01-02')).toEqual([]);

    const path = `/console/v1/usage/requests/${list[0]?.request_id}`;
    expect(await bodyAs(ConsoleRequestSchema, await person.get(path))).toEqual({ state: 'failed', ...list[0] });
    const byHeader = await person.get(`/console/v1/usage/requests/${failed.headers.get('x-request-id')}`);
    expect(await bodyAs(ConsoleRequestSchema, byHeader)).toEqual({ state: 'failed', ...list[0] });
    expect((await person.get('/console/v1/usage/requests/req_1')).status).toBe(404);
    const other = await newPerson();
    expect(await failures(other)).toEqual([]);
    expect((await other.get(path)).status).toBe(404);
  });

  it('that failed are stored without an unknown model, although a fallback model is known', async () => {
    const { secret } = await person.newKey();
    const provider = await harness.provider({
      models: ['known/fallback'],
      register: (register) => ({ ...register, fallback_models: true }),
      onJob: (job) => job.fail({ code: 'engine_failed' }),
    });
    const ask = () => chat(secret, { model: 'a secret name', models: ['known/fallback'] });
    expect((await ask()).status).toBe(402);
    await person.post('/console/v1/deposits/development', { amount_micro_usd: 1_000_000 });
    expect((await ask()).status).toBe(502);
    expect(await failures()).toMatchObject([
      { model: 'known/fallback', provider_id: provider.providerId, error: { code: 'provider_failed' } },
      { model: null, provider_id: null, error: { code: 'insufficient_quota' } },
    ]);
  });

  it('are summed by hour and model, for the filters of the page', async () => {
    const base = { account_id: accountId, reserved_at: AT };
    await settle([
      { ...base, ended_at: AT },
      { ...base, ended_at: AT + 3_599_999, prompt_tokens: 1 },
      { ...base, ended_at: AT + 3_600_000, model: 'b' },
      { ...base, account_id: 'somebody-else' },
    ]);
    const hours = async (query = ''): Promise<Static<typeof ConsoleUsageHoursSchema>['data']> =>
      (await bodyAs(ConsoleUsageHoursSchema, await person.get(`/console/v1/usage/hours?${RANGE}${query}`))).data;
    expect(await hours()).toEqual([
      hour('2026-01-31T12:00:00.000Z', 'a/model', { requests: 2, prompt_tokens: 11 }),
      hour('2026-01-31T13:00:00.000Z', 'b', { requests: 1, prompt_tokens: 10 }),
    ]);
    expect(await hours('&model=b')).toHaveLength(1);
    expect(await hours('&key=playground')).toEqual([]);
  });

  it('that failed are retained up to a maximum, the newest', async () => {
    const database = harness.app.database;
    const repository = new FailedRequestRepository({ database, maxRows: 2, onWriteError: (error) => expect.fail(String(error)) });
    const endpoint = '/v1/chat/completions';
    const facts = { accountId, keyId: 'key', model: null, endpoint, providerId: null, isSealed: true, latencyMs: 1 };
    for (const late of [0, 1, 2, 3])
      repository.add({ ...facts, jobId: randomUUID(), code: 'no_provider', failedAt: Date.now() + 10_000 + late });
    const filter = { accountId, range: { from: 0, to: 40_000 }, model: null, key: null };
    expect(await repository.list(filter, { limit: 9, after: null })).toMatchObject([
      { isSealed: true, keyName: null },
      { code: 'no_provider' },
    ]);
    await repository.close();
  });

  it("that failed are retained up to a maximum per account, so that one account cannot push out another's", async () => {
    const database = harness.app.database;
    const repository = new FailedRequestRepository({ database, maxRowsPerAccount: 2, onWriteError: (error) => expect.fail(String(error)) });
    const facts = { keyId: 'key', model: null, endpoint: '/v1/chat/completions', providerId: null, isSealed: false, latencyMs: 1 };
    const accounts = [randomUUID(), randomUUID()] as const;
    const add = (account: string, failedAt: number) =>
      repository.add({ ...facts, accountId: account, jobId: randomUUID(), code: 'no_provider', failedAt });
    for (const late of [0, 1, 2, 3, 4]) add(accounts[0], 1_800_000_000_000 + late);
    add(accounts[1], 1_700_000_000_000);
    const times = async (account: string): Promise<number[]> => {
      const filter = { accountId: account, range: { from: 0, to: 40_000 }, model: null, key: null };
      return (await repository.list(filter, { limit: 9, after: null })).map(({ failedAt }) => failedAt % 1000);
    };
    expect(await times(accounts[0])).toEqual([4, 3]);
    expect(await times(accounts[1])).toHaveLength(1);
    await repository.close();
  });
});

function hour(at: string, model: string, { requests, prompt_tokens }: { readonly requests: number; readonly prompt_tokens: number }) {
  return { hour: at, model, requests, prompt_tokens, completion_tokens: 20 * requests, images: 0, cost_micro_usd: 50 * requests };
}

async function bodyAs<Schema extends TSchema>(schema: Schema, answer: Response): Promise<Static<Schema>> {
  const body: unknown = await answer.json();
  expect([...Compile(schema).Errors(body)]).toEqual([]);
  return body as Static<Schema>;
}
