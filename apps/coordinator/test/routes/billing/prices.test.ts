import { Compile } from 'typebox/compile';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { PriceRepository } from '../../../src/billing/prices/price-repository.js';
import { PAYMENT_SCHEMAS } from '../../../src/routes/billing/payment-schemas.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';
import { errorOf, type Harness, MODEL, startHarness } from '../../support/harness.js';

const DEFAULTS = { prompt_per_million: 11, cached_per_million: 11, completion_per_million: 22, per_image: 33 };
const NEW = { prompt_per_million: 100_000, cached_per_million: 100_000, completion_per_million: 400_000, per_image: 0 };
const rates = (perMillion: number) => ({
  promptPerMillion: microUsd(perMillion),
  completionPerMillion: microUsd(perMillion),
  perImage: microUsd(0),
});

interface Shown {
  readonly model: string;
  readonly current: object;
  readonly history: readonly { readonly id: string; readonly prompt_per_million: number; readonly valid_from: string }[];
}

describeDatabases('prices', (fresh) => {
  let base: TestDatabase;
  let harness: Harness;
  let now = Date.now();

  const config = () => ({
    defaultPrices: { promptPerMillion: 11, cachedPerMillion: 11, completionPerMillion: 22, perImage: 33 },
    ...base.config,
  });
  beforeEach(async () => {
    base = await fresh();
    harness = await startHarness({ config: config(), now: () => now });
  });
  afterEach(async () => {
    await harness.close();
    await base.remove();
  });

  const put = (model: string, body: unknown, key = harness.adminKey) =>
    fetch(`${harness.url}/admin/v1/prices/${model}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}` },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const shown = async (model: string): Promise<Shown> =>
    (await (await harness.get(`/admin/v1/prices/${model}`, harness.adminKey)).json()) as Shown;
  const list = async (): Promise<{ data: { model: string }[] }> => {
    const response = await harness.get('/v1/prices', null);
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    const body = (await response.json()) as { data: { model: string }[] };
    expect([...Compile(PAYMENT_SCHEMAS.Prices).Errors(body)]).toEqual([]);
    return body;
  };

  it('equal the configuration until set, and are listed for served models', async () => {
    expect(await list()).toEqual({ object: 'list', currency: 'micro_usd', data: [] });
    expect(await shown('not/served')).toEqual({ model: 'not/served', current: DEFAULTS, history: [] });
    await harness.provider({ models: [MODEL, 'test/other'] });
    expect((await list()).data).toEqual([
      { model: MODEL, ...DEFAULTS },
      { model: 'test/other', ...DEFAULTS },
    ]);
    const set = await put(MODEL, NEW);
    expect(set.status).toBe(200);
    expect(await set.json()).toMatchObject({ model: MODEL, ...NEW, valid_from: new Date(now).toISOString() });
    expect((await list()).data).toEqual([
      { model: MODEL, ...NEW },
      { model: 'test/other', ...DEFAULTS },
    ]);
    expect((await put('*', { ...NEW, per_image: 5 })).status).toBe(200);
    expect((await list()).data).toEqual([
      { model: MODEL, ...NEW },
      { model: 'test/other', ...NEW, per_image: 5 },
    ]);
  });

  it('keep their history over restarts, and setting the same price again adds nothing', async () => {
    const first = now;
    await put(MODEL, NEW);
    now += 60_000;
    await put(MODEL, { ...NEW, prompt_per_million: 1, cached_per_million: 1 });
    now += 60_000;
    await put(MODEL, { ...NEW, prompt_per_million: 1, cached_per_million: 1 });
    const before = await shown(MODEL);
    expect(before.current).toEqual({ ...NEW, prompt_per_million: 1, cached_per_million: 1 });
    expect(before.history.map(({ prompt_per_million, valid_from }) => [prompt_per_million, Date.parse(valid_from)])).toEqual([
      [1, first + 60_000],
      [NEW.prompt_per_million, first],
    ]);
    const { dataDir } = harness;
    await harness.app.close(0);
    harness = await startHarness({ config: { ...config(), dataDir }, now: () => now });
    expect(await shown(MODEL)).toEqual(before);
  });

  it('charge cached tokens as others unless they have a rate of their own', async () => {
    const { cached_per_million: _, ...same } = NEW;
    expect((await put(MODEL, { ...same, cached_per_million: 5 })).status).toBe(200);
    expect((await shown(MODEL)).current).toEqual({ ...NEW, cached_per_million: 5 });
    now += 1000;
    expect((await put(MODEL, same)).status).toBe(200);
    expect((await shown(MODEL)).current).toEqual(NEW);
    expect((await put(MODEL, same)).status).toBe(200);
    expect((await shown(MODEL)).history).toHaveLength(2);
  });

  it('are refused unless whole micro-USD in bounds, complete, and for a model', async () => {
    for (const [param, body] of [
      ['cached_per_million', { ...NEW, cached_per_million: 100_001 }],
      ['cached_per_million', { ...NEW, cached_per_million: 0.5 }],
      ['prompt_per_million', { ...NEW, prompt_per_million: -1 }],
      ['prompt_per_million', { ...NEW, prompt_per_million: 0.5 }],
      ['prompt_per_million', { ...NEW, prompt_per_million: '5' }],
      ['completion_per_million', { ...NEW, completion_per_million: 10_000_000_001 }],
      ['completion_per_million', { ...NEW, completion_per_million: Number.POSITIVE_INFINITY }],
      ['per_image', { ...NEW, per_image: null }],
      ['per_image', { prompt_per_million: 1, completion_per_million: 1 }],
      ['per_imgae', { ...NEW, per_imgae: 1 }],
      ['valid_from', { ...NEW, valid_from: 'tomorrow' }],
      ['valid_from', { ...NEW, valid_from: '2020-01-01' }],
      ['valid_from', { ...NEW, valid_from: '2199-02-30' }],
      [null, []],
      [null, 'null'],
      [null, '{'],
      [null, ''],
      [null, '{"per_image":1,"per_image":2,"prompt_per_million":1,"completion_per_million":1}'],
    ] as const) {
      const response = await put(MODEL, body);
      expect([body, response.status]).toEqual([body, 400]);
      expect([body, (await errorOf(response)).param]).toEqual([body, param]);
    }
    for (const model of ['', '%20', '-x', 'a%00b', `a${'b'.repeat(256)}`, '%3Cscript%3E']) {
      expect([model, (await put(model, NEW)).status]).toEqual([model, 400]);
    }
    expect((await shown(MODEL)).history).toEqual([]);
  });

  it('can be announced for a later time', async () => {
    await put(MODEL, NEW);
    const announced = await put(MODEL, { ...DEFAULTS, valid_from: new Date(now + 3_600_000).toISOString() });
    expect(await announced.json()).toMatchObject({ ...DEFAULTS, valid_from: new Date(now + 3_600_000).toISOString() });
    const before = await shown(MODEL);
    expect(before.current).toEqual(NEW);
    expect(before.history).toHaveLength(2);
    now += 3_600_000;
    expect((await shown(MODEL)).current).toEqual(DEFAULTS);
    const { data } = (await (await harness.get('/admin/v1/prices', harness.adminKey)).json()) as { data: { model: string }[] };
    expect(data.map(({ model }) => model)).toEqual(['*', MODEL]);
  });

  it('are set only with an admin key', async () => {
    expect((await put(MODEL, NEW, harness.apiKey)).status).toBe(403);
    expect((await put(MODEL, NEW, 'service-wrong')).status).toBe(401);
    expect((await harness.get(`/admin/v1/prices/${MODEL}`)).status).toBe(403);
    expect((await harness.get(`/admin/v1/prices/${MODEL}`, null)).status).toBe(401);
    expect((await shown(MODEL)).history).toEqual([]);
  });

  it('are consistent between coordinators that set them at the same time', async () => {
    const open = () => PriceRepository.open({ database: harness.app.database, defaults: rates(1), onError: () => {}, refreshMs: 20 });
    const books: PriceRepository[] = [await open(), await open()];
    const [one, two] = books as [PriceRepository, PriceRepository];
    await Promise.all(Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? one : two).set({ model: 'm', ...rates(100 + index) })));
    const history = await one.history('m');
    expect(history.map(({ promptPerMillion }) => promptPerMillion).sort()).toEqual(Array.from({ length: 10 }, (_, index) => 100 + index));
    const times = history.map(({ validFrom }) => validFrom);
    expect(times).toEqual([...times].sort((a, b) => b - a));
    // Both repositories end up with the newest price, whichever of them set it.
    await harness.until(() => books.every((book) => book.current('m').id === history[0]?.id));
    for (const book of books) book.close();
  });
});
