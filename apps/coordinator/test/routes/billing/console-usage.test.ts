/** Usage of an account in the console, and keys of the playground. */
import { ConsoleNewKeySchema, ConsolePlaygroundKeySchema, ConsoleSessionListSchema, ConsoleUsagePageSchema } from '@inference/formats';
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { MAX_PLAYGROUND_KEYS, PLAYGROUND_KEY_MS } from '../../../src/database/accounts/playground-key-repository.js';
import { Browser } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { errorOf, type Harness, NO_RATE_LIMITS } from '../../support/harness.js';
import { settledJob } from '../../support/settled-job.js';

describeDatabases('usage in the console', (fresh) => {
  let harness: Harness;
  let person: Browser;
  let accountId: string;
  let people = 0;
  let late = 0;

  beforeAll(async () => {
    harness = await startHarnessOn(fresh, { config: { rateLimits: NO_RATE_LIMITS }, now: () => Date.now() + late });
  });
  afterAll(() => harness.close());
  beforeEach(async () => {
    late = 0;
    person = new Browser(harness.url);
    await person.signUp(`user-${++people}@example.com`);
    accountId = ((await (await person.get('/console/v1/me')).json()) as { id: string }).id;
  });

  const AT = Date.UTC(2026, 0, 31, 12);
  const settle = async (jobs: readonly Record<string, unknown>[]): Promise<void> => {
    const rows = jobs.map((job) =>
      settledJob({ account_id: accountId, api_key_id: 'gone', reserved_at: AT, ...job, job_id: `${accountId}-${job.job_id}` }),
    );
    await harness.app.database
      .insertInto('jobs')
      .values(rows as never)
      .execute();
  };
  const list = async (query: string): Promise<Static<typeof ConsoleUsagePageSchema>> =>
    bodyAs(ConsoleUsagePageSchema, await person.get(`/console/v1/usage?from=2026-01-01&to=2026-01-31${query}`));
  const idsOf = (page: Static<typeof ConsoleUsagePageSchema>): string[] =>
    page.data.map((entry) => entry.request_id.slice(accountId.length + 1));

  it('lists settled jobs newest first in pages, with key and provider, and filters by model, key and day', async () => {
    const key = await person.newKey({ name: 'laptop' });
    const playground = await bodyAs(ConsolePlaygroundKeySchema, await person.post('/console/v1/playground-key'));
    await settle([
      { job_id: '1', api_key_id: key.id },
      { job_id: '2', model: 'b/model', ended_at: AT + 1 },
      { job_id: '3', api_key_id: playground.id, ended_at: AT + 2, endpoint: '/v1/images/generations', images: 2, prompt_tokens: 0 },
      { job_id: '4', ended_at: AT + 2 },
      { job_id: '5', state: 'released', cost: 0, earned: 0, fee: 0 },
      { job_id: '6', account_id: 'somebody-else' },
      { job_id: '7', ended_at: AT - 40 * 86_400_000 },
    ]);
    const first = await list('&limit=3');
    expect(idsOf(first)).toEqual(['4', '3', '2']);
    expect(first.data[1]).toEqual({
      request_id: `${accountId}-3`,
      completed_at: new Date(AT + 2).toISOString(),
      model: 'a/model',
      endpoint: '/v1/images/generations',
      key: { id: playground.id, name: 'Playground' },
      provider_id: 'machine-1',
      prompt_tokens: 0,
      completion_tokens: 20,
      images: 2,
      cost_micro_usd: 50,
      latency_ms: 2,
    });
    const second = await list(`&limit=3&cursor=${first.next_cursor}`);
    expect(idsOf(second)).toEqual(['1']);
    expect(second.next_cursor).toBeNull();
    expect(second.data[0]?.key).toEqual({ id: key.id, name: 'laptop' });
    expect(idsOf(await list('&model=b/model'))).toEqual(['2']);
    expect(idsOf(await list(`&key=${key.id}`))).toEqual(['1']);
    expect(idsOf(await list('&key=playground'))).toEqual(['3']);
    expect(idsOf(await list('&key=unknown'))).toEqual([]);
    const day = await person.get('/console/v1/usage?from=2025-12-22&to=2025-12-22');
    expect(idsOf(await bodyAs(ConsoleUsagePageSchema, day))).toEqual(['7']);
    const days = (await (await person.get('/console/v1/usage/days?from=2026-01-01&to=2026-01-31&key=playground')).json()) as {
      data: unknown[];
    };
    expect(days.data).toMatchObject([{ day: '2026-01-31', model: 'a/model', requests: 1, images: 2, cost_micro_usd: 50 }]);
  });

  it('lists nothing to other accounts', async () => {
    await settle([{ job_id: '1' }]);
    expect((await list('')).data).toMatchObject([{ cost_micro_usd: 50, key: { name: null } }]);
    const other = new Browser(harness.url);
    await other.signUp(`user-${++people}@example.com`);
    expect(await (await other.get('/console/v1/usage?from=2026-01-01&to=2026-01-31')).json()).toEqual({ data: [], next_cursor: null });
    expect((await new Browser(harness.url).get('/console/v1/usage')).status).toBe(401);
  });

  it('writes the whole list as CSV, beyond one database page', async () => {
    const many = Array.from({ length: 501 }, (_, index) => ({ job_id: String(index).padStart(3, '0'), ended_at: AT + index }));
    await settle(many.slice(0, 300));
    await settle(many.slice(300));
    await settle([{ job_id: 'b', model: '=b,"model"' }]);
    const answer = await person.get('/console/v1/usage.csv?from=2026-01-31&to=2026-01-31');
    expect(answer.headers.get('content-type')).toMatch(/^text\/csv/);
    expect(answer.headers.get('content-disposition')).toContain('usage.csv');
    const lines = (await answer.text()).trimEnd().split('\r\n');
    expect(lines).toHaveLength(503);
    expect(new Set(lines).size).toBe(503);
    expect(lines[0]).toMatch(/^completed_at,request_id,model/);
    expect(lines[1]).toContain(`${accountId}-500,a/model,/v1/chat/completions,,machine-1,10,20,0,50,0.000050`);
    expect(lines.join('\n')).toContain(`"'=b,""model"""`);
    const filtered = await person.get('/console/v1/usage.csv?from=2026-01-31&to=2026-01-31&model=none');
    expect((await filtered.text()).trimEnd().split('\r\n')).toHaveLength(1);
    expect((await person.get('/console/v1/usage.csv?from=yesterday')).status).toBe(400);
    expect((await new Browser(harness.url).get('/console/v1/usage.csv')).status).toBe(401);
  });

  it('creates a playground key that works for an hour and is not listed', async () => {
    const key = await bodyAs(ConsolePlaygroundKeySchema, await person.post('/console/v1/playground-key'));
    expect((await harness.get('/v1/models', key.secret)).status).toBe(200);
    expect(await (await person.get('/console/v1/keys')).json()).toEqual({ data: [], next_cursor: null });
    expect((await person.send('PATCH', `/console/v1/keys/${key.id}`, { spend_limit_micro_usd: null })).status).toBe(404);
    expect((await person.send('DELETE', `/console/v1/keys/${key.id}`)).status).toBe(404);
    late = PLAYGROUND_KEY_MS + 1;
    const refused = await harness.get('/v1/models', key.secret);
    expect(refused.status).toBe(401);
    expect((await errorOf(refused)).message).toContain('expired');
    const anonymous = await new Browser(harness.url).post('/console/v1/playground-key');
    expect(anonymous.status).toBe(401);
  });

  it('revokes the oldest playground key beyond the maximum, and all on request', async () => {
    const secrets: string[] = [];
    for (let made = 0; made <= MAX_PLAYGROUND_KEYS; made++) {
      late += 1000;
      secrets.push((await bodyAs(ConsolePlaygroundKeySchema, await person.post('/console/v1/playground-key'))).secret);
    }
    const statuses = async (): Promise<number[]> =>
      Promise.all(secrets.map(async (secret) => (await harness.get('/v1/models', secret)).status));
    expect(await statuses()).toEqual([401, ...Array<number>(MAX_PLAYGROUND_KEYS).fill(200)]);
    expect((await person.send('DELETE', '/console/v1/playground-key')).status).toBe(200);
    expect(await statuses()).toEqual(Array<number>(MAX_PLAYGROUND_KEYS + 1).fill(401));
  });

  it('signs out everywhere else: other sessions and playground keys end, this session and own keys stay', async () => {
    const { email } = (await (await person.get('/console/v1/me')).json()) as { email: string };
    const other = new Browser(harness.url);
    await other.signIn(email);
    const { secret } = await bodyAs(ConsolePlaygroundKeySchema, await other.post('/console/v1/playground-key'));
    const own = await bodyAs(ConsoleNewKeySchema, await person.post('/console/v1/keys', { name: 'laptop' }));
    expect((await bodyAs(ConsoleSessionListSchema, await person.send('DELETE', '/console/v1/sessions'))).data).toHaveLength(1);
    expect((await other.get('/console/v1/me')).status).toBe(401);
    expect((await person.get('/console/v1/me')).status).toBe(200);
    expect((await harness.get('/v1/models', secret)).status).toBe(401);
    expect((await harness.get('/v1/models', own.secret)).status).toBe(200);
  });
});

async function bodyAs<Schema extends TSchema>(schema: Schema, answer: Response): Promise<Static<Schema>> {
  const body: unknown = await answer.json();
  expect([...Compile(schema).Errors(body)]).toEqual([]);
  return body as Static<Schema>;
}
