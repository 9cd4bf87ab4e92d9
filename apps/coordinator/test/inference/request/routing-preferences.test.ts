import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorOf, type Harness, MODEL, startHarness } from '../../support/harness.js';
import type { ProviderOptions, ScriptedProvider } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';

const OTHER = 'test/model-2';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(() => harness.close());

let serials = 0;
/** Connects a provider with its own serial number that supports fallback models. */
const provider = (options: ProviderOptions & { quantization?: string; fallbackModels?: boolean } = {}): Promise<ScriptedProvider> =>
  harness.provider({
    serial: `PREFER${serials++}`,
    ...options,
    register: (register) => ({
      ...register,
      fallback_models: options.fallbackModels ?? true,
      models: register.models.map((offer) => ({ ...offer, quantization: options.quantization ?? '8bit' })),
    }),
  });

const waitingRequests = async (): Promise<number> => {
  const { metadata } = (await (await harness.get(`/v1/models/${MODEL}`)).json()) as { metadata: { waiting_requests: number } };
  return metadata.waiting_requests;
};

const routes = async (body: Record<string, unknown>, times = 6) => {
  const seen: { id: string | null; routing: string | null }[] = [];
  for (let count = 0; count < times; count++) {
    const response = await harness.chat(body);
    expect([response.status, response.status === 200 ? '' : await response.text()]).toEqual([200, '']);
    await response.text();
    seen.push({ id: response.headers.get('x-provider-id'), routing: response.headers.get('x-inference-routing') });
  }
  return seen;
};

describe('provider preferences', () => {
  beforeEach(async () => {
    harness = await shared.take();
  });

  it('only and ignore select by id and by serial number', async () => {
    const [a, b, c] = [await provider({ serial: 'SERIALA' }), await provider(), await provider()];
    for (const { id, routing } of await routes({ provider: { only: [b.providerId, 'SERIALA'] } })) {
      expect([a.providerId, b.providerId]).toContain(id);
      expect(routing).toBe('only');
    }
    for (const { id } of await routes({ provider: { ignore: ['SERIALA', b.providerId] } })) expect(id).toBe(c.providerId);
    for (const { id } of await routes({ provider: { only: [a.providerId, b.providerId], ignore: ['SERIALA'] } })) {
      expect(id).toBe(b.providerId);
    }
  });

  it('order tries the named providers first, then any other', async () => {
    const [a, b] = [await provider({ slots: 1 }), await provider()];
    expect(await routes({ provider: { order: [b.providerId, a.providerId] } }, 3)).toEqual(
      Array(3).fill({ id: b.providerId, routing: 'order=0' }),
    );
    b.close();
    await harness.until(async () => (await routes({}, 1))[0]?.id === a.providerId && a.jobs.size > 0);
    expect(await routes({ provider: { order: [b.providerId, a.providerId] } }, 1)).toEqual([{ id: a.providerId, routing: 'order=1' }]);
    expect(await routes({ provider: { order: [b.providerId] } }, 1)).toEqual([{ id: a.providerId, routing: 'order=none' }]);
  });

  it('allow_fallbacks false makes one attempt, on the first choice', async () => {
    const failing = await provider({ onJob: (job) => job.fail({ code: 'engine_failed' }) });
    const other = await provider();
    const response = await harness.chat({ provider: { order: [failing.providerId, other.providerId], allow_fallbacks: false } });
    expect([response.status, (await errorOf(response)).code]).toEqual([502, 'provider_failed']);
    expect(other.begunCount).toBe(0);
    const [retried] = await routes({ provider: { order: [failing.providerId, other.providerId] } }, 1);
    expect(retried).toEqual({ id: other.providerId, routing: 'order=1' });
  });

  it('retries go to no ignored provider', async () => {
    const failing = await provider({ onJob: (job) => job.fail({ code: 'engine_failed' }) });
    const ignored = await provider();
    const response = await harness.chat({ provider: { ignore: [ignored.providerId] } });
    expect(response.status).toBe(502);
    expect([failing.jobs.size, ignored.jobs.size]).toEqual([1, 0]);
  });

  it('quantizations match labels and the names of OpenRouter', async () => {
    const [eight, four] = [await provider(), await provider({ quantization: '4bit' })];
    for (const { id } of await routes({ provider: { quantizations: ['int4'] } })) expect(id).toBe(four.providerId);
    for (const { id } of await routes({ provider: { quantizations: ['8bit', 'bf16'] } })) expect(id).toBe(eight.providerId);
    const none = await harness.chat({ provider: { quantizations: ['fp8'] } });
    expect([none.status, none.headers.get('x-should-retry')]).toEqual([503, 'false']);
    expect(await errorOf(none)).toMatchObject({
      code: 'provider_not_available',
      param: 'provider.quantizations',
      message: `No connected provider of the model ${MODEL} matches provider.quantizations.`,
    });
  });

  it('sort chooses the fastest by the criterion', async () => {
    const hardware = (gpu_cores: number, bandwidth_gbs: number): NonNullable<ProviderOptions['register']> => {
      return (register) => ({ ...register, hardware: { ...register.hardware, gpu_cores, bandwidth_gbs } });
    };
    // Memory bandwidth determines the decode rate, and processor cores the prefill rate.
    await harness.provider({ serial: 'SLOW1', register: hardware(8, 100) });
    const fast = await harness.provider({ serial: 'FAST1', register: hardware(40, 400) });
    for (const sort of ['throughput', 'latency', { by: 'throughput' }]) {
      const [first] = await routes({ provider: { sort } }, 1);
      expect(first).toEqual({ id: fast.providerId, routing: `sort=${typeof sort === 'string' ? sort : sort.by}` });
    }
    expect((await routes({ provider: { sort: 'price' } }, 1))[0]?.routing).toBe('sort=price');
  });

  it('min_trust refuses providers below the level', async () => {
    await provider();
    expect((await routes({ provider: { min_trust: 'self_signed' } }, 1))[0]?.routing).toBe('min_trust=self_signed');
    const response = await harness.chat({ provider: { min_trust: 'hardware' } });
    expect([response.status, await errorOf(response)]).toMatchObject([503, { code: 'no_provider', param: 'provider.min_trust' }]);
  });

  it('max_price refuses models above the price', async () => {
    await provider();
    expect((await routes({ provider: { max_price: { prompt: 0.05, completion: '0.2', image: 0, request: 0 } } }, 1))[0]?.routing).toBe(
      'max_price',
    );
    const response = await harness.chat({ provider: { max_price: { completion: 0.19 } } });
    expect([response.status, await errorOf(response)]).toMatchObject([
      400,
      { code: 'invalid_request', param: 'provider.max_price.completion', message: expect.stringContaining('0.2 USD per million tokens') },
    ]);
  });

  it('a waiting request takes no slot of an ignored provider', async () => {
    const jobs: (() => void)[] = [];
    const busy = await provider({ slots: 1, onJob: (job) => void jobs.push(() => job.answerHonestly()) });
    const running = harness.chat();
    await harness.until(() => jobs.length === 1);
    const idle = await provider();
    const waiting = harness.chat({ provider: { ignore: [idle.providerId] } });
    await harness.until(async () => (await waitingRequests()) === 1);
    jobs.shift()?.();
    await (await running).text();
    await harness.until(() => jobs.length === 1);
    jobs.shift()?.();
    const response = await waiting;
    expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, busy.providerId]);
    await response.text();
    expect(idle.begunCount).toBe(0);
  });

  it.each([
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
    ['/v1/completions', { prompt: 'hi' }],
    ['/v1/responses', { input: 'hi' }],
    ['/v1/messages', { messages: [{ role: 'user', content: 'hi' }], max_tokens: 16 }],
    ['/v1/messages/count_tokens', { messages: [{ role: 'user', content: 'hi' }] }],
  ])('are read, refused or unknown at %s', async (path, body) => {
    const [a, b] = [await provider(), await provider()];
    const ok = await harness.post(path, { model: MODEL, ...body, provider: { ignore: [a.providerId], require_parameters: true } });
    expect([ok.status, ok.headers.get('x-provider-id'), ok.headers.get('x-inference-ignored')]).toEqual([200, b.providerId, null]);
    await ok.text();
    const refused = async (provider: object): Promise<string> => {
      const response = await harness.post(path, { model: MODEL, ...body, provider });
      expect(response.status).toBe(400);
      return ((await response.json()) as { error: { message: string } }).error.message;
    };
    expect(await refused({ zdr: true })).toContain('provider.zdr is not supported');
    expect(await refused({ data_collection: 'deny' })).toContain('provider.data_collection is not supported');
    expect(await refused({ ignores: [] })).toMatch(/provider\.ignores.*did you mean `ignore`/);
    expect(await refused({ region: 'eu' })).toContain('provider.region');
    expect(await refused({ sort: 'speed' })).toContain('provider.sort must be');
    expect(await refused({ max_price: { prompt: -1 } })).toContain('provider.max_price.prompt must be');
  });

  it('are read and refused by name at /v1/embeddings', async () => {
    const { providerId } = await harness.provider({
      register: (register) => ({ ...register, models: register.models.map((offer) => ({ ...offer, model_type: 'embedding' as const })) }),
    });
    const refusal = async (provider: object) => {
      const response = await harness.post('/v1/embeddings', { model: MODEL, input: 'hi', provider });
      const { code, param } = await errorOf(response);
      return [response.status, code, param];
    };
    expect(await refusal({ only: ['ABSENT'] })).toEqual([503, 'provider_not_available', 'provider.only']);
    expect(await refusal({ ignore: [providerId] })).toEqual([503, 'provider_not_available', 'provider.ignore']);
    expect(await refusal({ max_price: { prompt: 0.01 } })).toEqual([400, 'invalid_request', 'provider.max_price.prompt']);
    expect(await refusal({ zdr: true })).toMatchObject([400, expect.any(String), 'provider.zdr']);
  });
});

describe('fallback models', () => {
  // A model that was served a moment ago counts as served.
  beforeEach(async () => {
    harness = await startHarness();
  });

  const dear = (model: string) =>
    harness.app.prices.set({ model, promptPerMillion: 1_000_000, completionPerMillion: 4_000_000, perImage: 0 } as never);

  it('answer where the first model is not served, and are billed at their own price', async () => {
    await dear(OTHER);
    const machine = await provider({ models: [OTHER] });
    const before = await harness.money();
    const response = await harness.chat({ models: [OTHER], max_tokens: 4 });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-inference-fallback-model')).toBe(OTHER);
    expect(response.headers.get('x-inference-fallback-reason')).toBe('model_not_found');
    expect(response.headers.get('x-provider-id')).toBe(machine.providerId);
    expect(await response.json()).toMatchObject({ model: OTHER });
    expect(response.headers.get('x-inference-cost-micro-usd')).toBe(String(7 + 16));
    expect(await harness.money()).toEqual({ balance: before.balance - 23, reserved: 0 });
    const usage = (await (await harness.get('/v1/payments/usage')).json()) as { usage: object[] };
    expect(usage.usage[0]).toMatchObject({ model: OTHER, cost_micro_usd: 23, completion_tokens: 4 });
  });

  it('answer streams, whose events name the model that answers', async () => {
    await provider({ models: [OTHER] });
    const response = await harness.chat({ models: [OTHER], stream: true });
    expect(response.headers.get('x-inference-fallback-model')).toBe(OTHER);
    const events = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: {'));
    expect(events.length).toBeGreaterThan(2);
    for (const event of events) expect(JSON.parse(event.slice(6))).toMatchObject({ model: OTHER });
  });

  it('answer where the providers of the first model fail, at the price of the model that answers', async () => {
    await dear(MODEL);
    await provider({ onJob: (job) => job.fail({ code: 'engine_failed' }) });
    await provider({ models: [OTHER] });
    const before = await harness.money();
    const response = await harness.chat({ models: [OTHER], max_tokens: 4 });
    expect([response.status, response.headers.get('x-inference-fallback-reason')]).toEqual([200, 'engine_failed']);
    await response.text();
    // 7 prompt tokens cost 0.35 micro-USD and 4 completion tokens 0.8, each rounded up.
    expect(await harness.money()).toEqual({ balance: before.balance - 2, reserved: 0 });
    expect(harness.jobLines().at(-1)).toMatchObject({ model: OTHER, attempts: 2 });
  });

  it('answer prompts that are too long for the first model', async () => {
    await provider({ onJob: (job) => job.fail({ code: 'context_length_exceeded', limit: 4096, actual: 5000 }) });
    await provider({ models: [OTHER] });
    const response = await harness.chat({ models: [OTHER] });
    expect([response.status, response.headers.get('x-inference-fallback-reason')]).toEqual([200, 'context_length_exceeded']);
  });

  it('answer where all providers of the first model are busy; without a free one, the first one is awaited', async () => {
    const jobs: (() => void)[] = [];
    const hold: ProviderOptions['onJob'] = (job) => void jobs.push(() => job.answerHonestly());
    const first = await provider({ slots: 1, onJob: hold });
    const second = await provider({ slots: 1, models: [OTHER], onJob: hold });
    const running = harness.chat();
    await harness.until(() => jobs.length === 1);
    const fallback = harness.chat({ models: [OTHER] });
    await harness.until(() => second.jobs.size === 1);
    const waiting = harness.chat({ models: [OTHER] });
    await harness.until(async () => (await waitingRequests()) === 1);
    jobs.shift()?.();
    await harness.until(() => first.jobs.size === 2);
    for (const answer of jobs.splice(0)) answer();
    const [one, two, three] = await Promise.all([running, fallback, waiting]);
    expect([one, two, three].map((response) => response.headers.get('x-inference-fallback-model'))).toEqual([null, OTHER, null]);
    expect(two?.headers.get('x-inference-fallback-reason')).toBe('timeout');
  });

  it('return to the provider that has the prefix of the conversation', async () => {
    const machines = [await provider({ models: [OTHER] }), await provider({ models: [OTHER] }), await provider({ models: [OTHER] })];
    const messages = [{ role: 'user', content: 'A long story. '.repeat(600) }];
    const [first] = await routes({ models: [OTHER], messages }, 1);
    const others = await routes(
      { models: [OTHER], messages: [...messages, { role: 'assistant', content: 'ok' }, { role: 'user', content: 'on' }] },
      4,
    );
    expect(machines.map(({ providerId }) => providerId)).toContain(first?.id);
    expect(others.map(({ id }) => id)).toEqual(Array(4).fill(first?.id));
  });

  it('run only on agents that serve them', async () => {
    const old = await provider({ models: [OTHER], fallbackModels: false });
    const response = await harness.chat({ models: [OTHER] });
    expect(response.status).not.toBe(200);
    expect(old.begunCount).toBe(0);
    const current = await provider({ models: [OTHER] });
    const answered = await harness.chat({ models: [OTHER] });
    expect([answered.status, answered.headers.get('x-provider-id')]).toEqual([200, current.providerId]);
  });

  it('are left out above max_price, and reserve the dearest allowed model', async () => {
    await dear(OTHER);
    await provider({ onJob: (job) => job.fail({ code: 'engine_failed' }) });
    await provider({ models: [OTHER] });
    const refused = await harness.chat({ models: [OTHER], provider: { max_price: { prompt: 0.5 } } });
    expect(refused.status).toBe(502);
    const poor = await harness.customer(2000);
    const post = (body: object) =>
      harness.post(
        '/v1/chat/completions',
        { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_tokens: 4000, ...body },
        { 'x-api-key': poor.apiKey },
      );
    expect((await post({ models: [OTHER] })).status).toBe(402);
    expect((await post({})).status).toBe(502);
  });

  it('are checked, and the model of the request is none', async () => {
    await provider();
    const bad = await harness.chat({ models: [7] });
    expect([bad.status, (await errorOf(bad)).param]).toEqual([400, 'models[0]']);
    const same = await harness.chat({ models: [MODEL] });
    expect([same.status, same.headers.get('x-inference-fallback-model')]).toEqual([200, null]);
  });

  it('are not used with allow_fallbacks false', async () => {
    const machine = await provider({ models: [OTHER] });
    const response = await harness.chat({ models: [OTHER], provider: { allow_fallbacks: false } });
    expect([response.status, machine.jobs.size]).toEqual([404, 0]);
  });
});
