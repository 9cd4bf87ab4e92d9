import { expect, it } from 'vitest';
import { checkLedger } from '../../src/database/ledger/check-ledger.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';
import { errorOf, type Harness, MODEL, startHarness } from '../support/harness.js';
import type { ScriptedJob } from '../support/scripted-provider.js';

const COUNTS = { prompt_tokens: 50, completion_tokens: 4, total_tokens: 54, cached_tokens: 40 };
const ASK = { messages: [{ role: 'user', content: 'hi' }] };

/** Answers with {@link COUNTS}; `signed`: cached tokens in the receipt. */
function answer(job: ScriptedJob, signed = COUNTS.cached_tokens): void {
  Object.defineProperty(job, 'usage', { value: COUNTS });
  job.answerHonestly(undefined, { receipt: (receipt) => ({ ...receipt, usage: { ...COUNTS, cached_tokens: signed } }) });
}

describeDatabases('a price for cached prompt tokens', (fresh) => {
  const withHarness = async (body: (harness: Harness) => Promise<void>): Promise<void> => {
    const base: TestDatabase = await fresh();
    const harness = await startHarness({
      config: 'url' in base.target ? { databaseUrl: base.target.url } : {},
    });
    try {
      const response = await fetch(`${harness.url}/admin/v1/prices/${MODEL}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${harness.adminKey}` },
        body: JSON.stringify({
          prompt_per_million: 1_000_000,
          cached_per_million: 100_000,
          completion_per_million: 1_000_000,
          per_image: 0,
        }),
      });
      expect(response.status).toBe(200);
      await body(harness);
      expect((await checkLedger(harness.app.database)).problems).toEqual([]);
    } finally {
      await harness.close();
      await base.remove();
    }
  };

  it('is equal in response, receipt, bill and statistics', () =>
    withHarness(async (harness) => {
      await harness.provider({ onJob: (job) => answer(job) });
      const before = await harness.money();
      const chat = await harness.chat();
      expect(chat.status).toBe(200);
      // 10 tokens at a micro-USD, 40 at a tenth, and 4 completion tokens.
      expect(chat.headers.get('x-inference-cost-micro-usd')).toBe('18');
      expect(await chat.json()).toMatchObject({ usage: { prompt_tokens: 50, prompt_tokens_details: { cached_tokens: 40 } } });
      const message = await harness.post('/v1/messages', {
        model: MODEL,
        max_tokens: 16,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }] }],
      });
      expect(message.headers.get('x-inference-cost-micro-usd')).toBe('18');
      expect(await message.json()).toMatchObject({ usage: { input_tokens: 10, cache_read_input_tokens: 40 } });
      const response = await harness.post('/v1/responses', { model: MODEL, input: 'hi' });
      expect(await response.json()).toMatchObject({ usage: { input_tokens: 50, input_tokens_details: { cached_tokens: 40 } } });
      expect(await harness.money()).toEqual({ balance: before.balance - 54, reserved: 0 });
      const { usage } = (await (await harness.get('/v1/payments/usage')).json()) as { usage: object[] };
      expect(usage).toMatchObject(Array(3).fill({ prompt_tokens: 50, completion_tokens: 4, cost_micro_usd: 18 }));
      const listed = (await (await harness.get(`/v1/models/${MODEL}`)).json()) as { pricing: object };
      expect(listed.pricing).toMatchObject({ prompt: '0.000001', input_cache_read: '0.0000001' });
      expect(await (await harness.get('/v1/prices', null)).json()).toMatchObject({ data: [{ model: MODEL, cached_per_million: 100_000 }] });
    }));

  it.each(['/v1/chat/completions', '/v1/messages', '/v1/responses'])('refuses receipts with other cached tokens than %s reports', (path) =>
    withHarness(async (harness) => {
      await harness.provider({ onJob: (job) => answer(job, 20) });
      const before = await harness.money();
      const marked = [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }] }];
      const bodies = { '/v1/responses': { input: 'hi' }, '/v1/messages': { messages: marked, max_tokens: 16 } };
      const response = await harness.post(path, { model: MODEL, ...(bodies[path as keyof typeof bodies] ?? ASK) });
      expect(response.status).toBeGreaterThanOrEqual(500);
      expect(await harness.money()).toEqual({ ...before, reserved: 0 });
    }),
  );

  it('refuses more cached tokens than prompt tokens', () =>
    withHarness(async (harness) => {
      await harness.provider({
        onJob: (job) => {
          Object.defineProperty(job, 'usage', { value: { ...COUNTS, cached_tokens: 51 } });
          job.answerHonestly();
        },
      });
      const response = await harness.chat();
      expect((await errorOf(response)).code).toBe('response_verification_failed');
    }));
});
