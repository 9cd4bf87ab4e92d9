/** Cost of each way in which a job can end: delivered and signed usage is charged once, anything else costs nothing. */
import type { Receipt } from '@inference/protocol';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { microUsd } from '../../src/billing/micro-usd.js';
import { costOf } from '../../src/billing/prices/price.js';
import { errorOf, type Harness, ledgerWith, MODEL, startHarness, until } from '../support/harness.js';
import { BODIES, STREAMING } from '../support/inference-calls.js';
import type { ScriptedJob } from '../support/scripted-provider.js';
import { SharedHarness } from '../support/shared-harness.js';

const shared = new SharedHarness();
const brief = { acceptMs: 80, firstContentMs: 80, betweenFramesMs: 80, completionMs: 80, queueMs: 80, commitMs: 5000 };
const sharedBrief = new SharedHarness({ jobTimings: brief });
afterAll(() => Promise.all([shared.close(), sharedBrief.close()]));

let harness: Harness;
afterEach(() => harness.close());

const price = (promptTokens: number, completionTokens: number): number =>
  costOf(harness.app.prices.current(MODEL), { promptTokens, completionTokens });

/** Runs `work` and returns what the developer's account paid. No reservation may remain. */
async function paidFor(work: () => Promise<unknown>): Promise<number> {
  const before = await harness.money();
  await work();
  await until(async () => (await harness.money()).reserved === 0 && harness.jobLines().length > 0);
  return before.balance - (await harness.money()).balance;
}

describe('a delivered response', () => {
  for (const endpoint of STREAMING) {
    for (const stream of [false, true]) {
      it(`costs what its receipt says: ${endpoint}${stream ? ', streamed' : ''}`, async () => {
        harness = await shared.take();
        const provider = await harness.provider({ onJob: (job) => job.answerHonestly(['one', ' two', ' three']) });
        let response = new Response();
        const paid = await paidFor(async () => {
          response = await harness.post(endpoint, { ...BODIES[endpoint], stream });
          await response.text();
        });
        expect(response.status).toBe(200);
        expect(paid).toBe(price(7, 3));
        if (!stream) expect(response.headers.get('x-inference-cost-micro-usd')).toBe(String(paid));
        const [line] = harness.jobLines();
        expect(line).toMatchObject({ status: 'delivered', cost_micro_usd: paid, prompt_tokens: 7, completion_tokens: 3 });
        const earned = await harness.money(`provider:${provider.providerId}`);
        expect(earned.balance).toBeGreaterThan(0);
        expect(earned.balance).toBeLessThanOrEqual(paid);
      });
    }
  }

  it('of a second provider pays only that provider', async () => {
    harness = await startHarness({ random: () => 0 });
    const bad = await harness.provider({ onJob: (job) => job.fail({ code: 'engine_failed' }) });
    const good = await harness.provider();
    const paid = await paidFor(async () => expect((await harness.chat()).status).toBe(200));
    expect(paid).toBe(price(7, 4));
    expect((await harness.money(`provider:${good.providerId}`)).balance).toBeGreaterThan(0);
    expect((await harness.money(`provider:${bad.providerId}`)).balance).toBe(0);
  });

  it('to a token count is free and needs no balance', async () => {
    harness = await shared.take();
    await harness.provider();
    const { accountId, apiKey } = await harness.customer(0);
    const body = { model: MODEL, messages: [{ role: 'user', content: 'hi' }] };
    const response = await harness.post('/v1/messages/count_tokens', body, { 'x-api-key': apiKey });
    expect([response.status, response.headers.get('x-inference-cost-micro-usd')]).toEqual([200, '0']);
    expect(await harness.money(accountId)).toEqual({ balance: 0, reserved: 0 });
  });
});

describe('nothing is paid, and nothing stays reserved, when', () => {
  const endings: Record<string, { stream?: boolean; job: (job: ScriptedJob) => void }> = {
    'every provider fails': { job: (job) => job.fail({ code: 'internal' }) },
    'the request is refused': { job: (job) => job.fail({ code: 'context_length_exceeded', limit: 1, actual: 2 }) },
    'the provider never accepts': { job: () => {} },
    'the provider never says anything': { stream: true, job: (job) => job.accept() },
    'the provider goes before the first byte': { stream: true, job: (job) => job.provider.close() },
    'the provider goes after the first byte': {
      stream: true,
      job: (job) => {
        job.beginStream(['some', ' words']);
        setTimeout(() => job.provider.close(), 30);
      },
    },
    'the engine fails after the first byte': {
      stream: true,
      job: (job) => {
        job.beginStream(['some']);
        setTimeout(() => job.fail({ code: 'engine_failed' }), 30);
      },
    },
    'the provider falls silent in the middle': { stream: true, job: (job) => job.beginStream(['some']) },
    'the end is never signed': {
      stream: true,
      job: (job) => {
        for (const [index, part] of job.render(['a']).entries()) {
          if (index === 0) job.accept();
          job.push(part);
        }
        job.push(new Uint8Array(), true);
      },
    },
    'the signature is wrong': {
      job: (job) =>
        job.answerHonestly(undefined, {
          message: (message) => ({ ...message, signature: job.provider.enclave.signResponse('0'.repeat(64)) }),
        }),
    },
    'the signature of a stream is wrong': {
      stream: true,
      job: (job) =>
        job.answerHonestly(undefined, {
          message: (message) => ({ ...message, signature: job.provider.enclave.signResponse('0'.repeat(64)) }),
        }),
    },
    'more tokens are signed than max_tokens allows': {
      job: (job) =>
        job.answerHonestly(undefined, {
          receipt: (receipt: Receipt) => ({ ...receipt, usage: { prompt_tokens: 7, completion_tokens: 9000, total_tokens: 9007 } }),
        }),
    },
    'a stream is cut short that nobody cancelled': {
      stream: true,
      job: (job) => {
        job.beginStream(['cut']);
        job.push(new Uint8Array(), true);
        job.complete({ receipt: (receipt) => ({ ...receipt, finish_reason: 'cancelled' }) });
      },
    },
  };
  for (const [name, { stream = false, job }] of Object.entries(endings)) {
    it(name, async () => {
      harness = await sharedBrief.take();
      const provider = await harness.provider({ onJob: job });
      const paid = await paidFor(async () => {
        const text = await (await harness.chat({ stream })).text();
        expect(text).toContain('"error"');
        expect(text).not.toContain('se_signature');
      });
      expect(paid).toBe(0);
      expect((await harness.money(`provider:${provider.providerId}`)).balance).toBe(0);
      expect(harness.jobLines()[0]).not.toMatchObject({ status: 'delivered' });
    });
  }

  it('the model is not served', async () => {
    harness = await shared.take();
    expect(await paidFor(async () => expect((await harness.chat({ model: 'nobody/serves-this' })).status).toBe(404))).toBe(0);
  });

  it('the coordinator stops in the middle', async () => {
    harness = await startHarness();
    const provider = await harness.provider({ onJob: (job) => job.beginStream(['some']) });
    const response = await harness.chat({ stream: true });
    const reserved = (await harness.money()).reserved;
    expect(reserved).toBeGreaterThan(0);
    const { accountId } = harness.developer;
    const again = harness.dataDir;
    const text = response.text();
    await harness.app.close(50);
    expect(await text).toContain('shutting_down');
    expect(provider.jobs.size).toBe(1);
    harness = await startHarness({ config: { dataDir: again } });
    expect(harness.developer.accountId).toBe(accountId);
    expect(await harness.money()).toEqual({ balance: 100_000_000, reserved: 0 });
  });
});

describe('before a job runs', () => {
  it('the balance must cover the maximum cost, or 402 names the missing amount, in every format', async () => {
    harness = await shared.take();
    const provider = await harness.provider();
    const { accountId, apiKey } = await harness.customer(50);
    for (const endpoint of STREAMING) {
      for (const stream of [false, true]) {
        const response = await harness.post(
          endpoint,
          { ...BODIES[endpoint], stream, max_tokens: 2000, max_output_tokens: 2000 },
          { 'x-api-key': apiKey },
        );
        expect([response.status, response.headers.get('x-should-retry'), response.headers.get('retry-after')]).toEqual([
          402,
          'false',
          null,
        ]);
        expect(response.headers.get('content-type')).toContain('application/json');
        const { error } = (await response.json()) as { error: Record<string, unknown> };
        expect(error).toMatchObject(
          endpoint === '/v1/messages' ? { type: 'billing_error' } : { type: 'insufficient_quota', code: 'insufficient_quota' },
        );
        expect(error.message).toMatch(/could cost up to \$0\.000[4-9]\d\d \(\d+ micro-USD\).*2000 output tokens \(max_tokens\)/);
        expect(error.message).toContain('your balance is $0.000050 (50 micro-USD). Add credits or lower max_tokens.');
      }
    }
    expect(provider.begunCount).toBe(0);
    expect(await harness.money(accountId)).toEqual({ balance: 50, reserved: 0 });
    // The same request with a `max_tokens` that the balance covers.
    expect(
      (await harness.post('/v1/chat/completions', { ...BODIES['/v1/chat/completions'], max_tokens: 20 }, { 'x-api-key': apiKey })).status,
    ).toBe(200);
  });

  it("the key's budget must have the maximum cost left, in every format", async () => {
    harness = await startHarness({
      wrapLedger: (ledger) =>
        ledgerWith(ledger, {
          reserve: (reservation) =>
            ledger.reserve({ ...reservation, keyBudget: { amount: microUsd(100), period: 'month' }, at: Date.UTC(2036, 11, 5) }),
        }),
    });
    const provider = await harness.provider();
    for (const endpoint of STREAMING) {
      const response = await harness.post(endpoint, { ...BODIES[endpoint], max_tokens: 2000, max_output_tokens: 2000 });
      expect([response.status, response.headers.get('x-should-retry')]).toEqual([402, 'false']);
      const { error } = (await response.json()) as { error: Record<string, unknown> };
      expect(error).toMatchObject(
        endpoint === '/v1/messages' ? { type: 'billing_error' } : { type: 'insufficient_quota', code: 'key_budget_exceeded' },
      );
      expect(error.message).toMatch(
        /could cost up to .*Of this API key's budget of \$0\.000100 \(100 micro-USD\) per month, \$0\.000000 \(0 micro-USD\) is spent\. The budget resets at 2037-01-01T00:00:00Z\. Raise the budget or lower max_tokens\.$/,
      );
    }
    expect(provider.begunCount).toBe(0);
    expect((await harness.money()).reserved).toBe(0);
    expect((await harness.chat({ max_tokens: 10 })).status).toBe(200);
  });

  it('the key must have the maximum cost left of its spend limit', async () => {
    harness = await startHarness({
      wrapLedger: (ledger) =>
        ledgerWith(ledger, { reserve: (reservation) => ledger.reserve({ ...reservation, keySpendLimit: microUsd(100) }) }),
    });
    const provider = await harness.provider();
    const response = await harness.chat({ max_tokens: 2000 });
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([402, 'false']);
    const error = await errorOf(response);
    expect(error.code).toBe('insufficient_quota');
    expect(error.message).toContain(
      'the spend limit of this API key leaves $0.000100 (100 micro-USD). Raise the limit or lower max_tokens.',
    );
    expect(provider.begunCount).toBe(0);
    expect((await harness.chat({ max_tokens: 10 })).status).toBe(200);
  });

  it('no more is reserved than the model can generate', async () => {
    harness = await shared.take();
    let reserved = 0;
    await harness.provider({
      onJob: async (job) => {
        reserved = (await harness.money()).reserved;
        job.answerHonestly();
      },
    });
    expect((await harness.chat({ max_tokens: 1_000_000 })).status).toBe(200);
    // The scripted models have a context of 4096 tokens.
    expect(reserved).toBeGreaterThanOrEqual(price(0, 4096));
    expect(reserved).toBeLessThanOrEqual(price(4096, 4096));
  });

  it('a hundred requests against a balance for one: exactly one runs', async () => {
    harness = await shared.take();
    const release: (() => void)[] = [];
    await harness.provider({ slots: 200, onJob: (job) => void release.push(() => job.answerHonestly()) });
    const one = await harness.customer(0);
    const body = { ...BODIES['/v1/chat/completions'], max_tokens: 1000 };
    const max = price(JSON.stringify(body).length + 512, 1000);
    const deposit = { eventId: 'for-one', accountId: one.accountId, amount: microUsd(max), source: 'admin', at: Date.now() } as const;
    await harness.app.ledger.deposit(deposit);
    const keys = [one.apiKey, await harness.addKey(one.accountId)];
    const answers = Array.from({ length: 100 }, (_, index) =>
      harness.post('/v1/chat/completions', body, { 'x-api-key': keys[index % 2] as string }),
    );
    const settled: number[] = [];
    for (const answer of answers) void answer.then(({ status }) => settled.push(status));
    await until(() => settled.length === 99 && release.length === 1);
    expect(new Set(settled)).toEqual(new Set([402]));
    release[0]?.();
    await Promise.all(answers);
    expect(settled.filter((status) => status === 200)).toHaveLength(1);
    expect(await harness.money(one.accountId)).toEqual({ balance: max - price(7, 4), reserved: 0 });
  });

  it('the reservation of a failed job is released before its client gets the error', async () => {
    harness = await shared.take();
    let fails = true;
    await harness.provider({ onJob: (job) => (fails ? job.fail({ code: 'invalid_request' }) : job.answerHonestly()) });
    const { apiKey } = await harness.customer(300);
    const ask = () =>
      harness.post('/v1/chat/completions', { ...BODIES['/v1/chat/completions'], max_tokens: 1000 }, { 'x-api-key': apiKey });
    for (let round = 0; round < 3; round++) expect((await ask()).status).toBe(400);
    fails = false;
    expect((await ask()).status).toBe(200);
  });
});

it('the development deposit happens once, over any number of starts', async () => {
  harness = await startHarness();
  const { dataDir } = harness;
  await harness.provider();
  expect((await harness.chat()).status).toBe(200);
  const left = await harness.money();
  expect(left.balance).toBe(100_000_000 - price(7, 4));
  await harness.app.close(50);
  harness = await startHarness({ config: { dataDir } });
  expect(await harness.money()).toEqual(left);
});
