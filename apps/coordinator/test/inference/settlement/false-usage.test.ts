/** Impossible signed token counts: the client pays nothing, and the provider gets no more jobs. */
import type { Receipt } from '@inference/protocol';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import { BODIES, STREAMING, type Streaming } from '../../support/inference-calls.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(async () => {
  await harness.close();
  vi.restoreAllMocks();
});

type Counts = readonly [prompt: number, completion: number, hidden?: number];

/** Signs other counts than those in the body. */
const signed =
  ([prompt, completion, hidden = 0]: Counts) =>
  (receipt: Receipt): Receipt => ({
    ...receipt,
    usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
    hidden_tokens: hidden,
  });

/** Reports the same counts in the body and in the receipt. */
function reportAndSign(job: ScriptedJob, [prompt, completion, hidden = 0]: Counts, text = 'short'): void {
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  job.accept();
  const { parsed, context } = job;
  if (parsed === null) throw new Error('the request is not complete');
  const responseMetadata = { responseId: context.response_id, created: context.created, model: context.model };
  const events = [
    { type: 'start', promptTokens: prompt },
    { type: 'text', text },
    { type: 'finish', reason: 'stop', usage, hiddenTokens: hidden },
  ] as const;
  if (context.stream) job.push(Buffer.from(parsed.answer.stream(responseMetadata).render(...events)));
  else {
    const plain = parsed.answer.plain(responseMetadata);
    plain.add(...events);
    job.push(Buffer.from(plain.body()));
  }
  job.push(new Uint8Array(), true);
  job.complete({ receipt: signed([prompt, completion, hidden]) });
}

async function expectLie(
  onJob: (job: ScriptedJob) => void | Promise<void>,
  problem: string,
  endpoint: Streaming,
  stream: boolean,
): Promise<void> {
  const provider = await harness.provider({ onJob });
  const before = await harness.money();
  const response = await harness.post(endpoint, { ...BODIES[endpoint], stream, ...(stream ? INCLUDE_USAGE[endpoint] : {}) });
  const text = await response.text();
  await until(async () => harness.jobLines().length > 0 && (await harness.money()).reserved === 0);
  expect(harness.jobLines()).toEqual([expect.objectContaining({ status: 'bad_signature', problem, provider: provider.providerId })]);
  if (stream) {
    expect(text).toContain('"error"');
    expect(text).not.toContain('se_signature');
  } else expect(response.status).toBe(endpoint === '/v1/messages' ? 500 : 502);
  expect(await harness.money()).toEqual(before);
  expect((await harness.money(`provider:${provider.providerId}`)).balance).toBe(0);
  expect(harness.app.providers.reputations.summaryOf(provider.providerId).state).toBe('quarantined');
  expect(harness.app.providers.snapshot(provider.providerId)?.status).toBe('quarantined');
}

const INCLUDE_USAGE: Record<Streaming, object> = {
  '/v1/chat/completions': { stream_options: { include_usage: true } },
  '/v1/completions': { stream_options: { include_usage: true } },
  '/v1/responses': {},
  '/v1/messages': {},
};

describe("a receipt whose counts differ from the body's", () => {
  for (const endpoint of STREAMING) {
    for (const stream of [false, true]) {
      it(`is rejected: ${endpoint}${stream ? ', streamed' : ''}`, async () => {
        harness = await shared.take();
        await expectLie((job) => job.answerHonestly(undefined, { receipt: signed([8, 4]) }), 'usage.reported', endpoint, stream);
      });
    }
  }

  it.each([
    ['more of the prompt and of hidden tokens than there can be', [9_000_000, 8192, 8192]],
    ['fewer completion tokens', [7, 3]],
    ['other hidden tokens', [7, 4, 2]],
  ] as const)('is not believed: %s', async (_, counts) => {
    harness = await shared.take();
    await expectLie((job) => job.answerHonestly(undefined, { receipt: signed(counts) }), 'usage.reported', '/v1/chat/completions', false);
  });

  it('is rejected for a token count too', async () => {
    harness = await shared.take();
    const provider = await harness.provider({ onJob: (job) => job.answerHonestly([], { receipt: signed([8, 0]) }) });
    const { model, messages } = BODIES['/v1/messages'];
    expect((await harness.post('/v1/messages/count_tokens', { model, messages })).status).toBe(500);
    expect(harness.app.providers.reputations.summaryOf(provider.providerId).state).toBe('quarantined');
  });

  it('costs nothing for a client that has left its stream', async () => {
    harness = await shared.take();
    const provider = await harness.provider({
      onJob: (job) => job.beginStream(['some', ' words']),
      onCancel: (job) => {
        job.push(new Uint8Array(), true);
        job.complete({ receipt: (receipt) => ({ ...signed([900_000, 2])(receipt), finish_reason: 'cancelled' }) });
      },
    });
    const before = await harness.money();
    const client = new AbortController();
    const response = await harness.chat({ stream: true }, { signal: client.signal });
    await response.body?.getReader().read();
    client.abort();
    await until(async () => harness.jobLines().length > 0 && (await harness.money()).reserved === 0);
    expect(await harness.money()).toEqual(before);
    expect(harness.app.providers.reputations.summaryOf(provider.providerId).state).toBe('quarantined');
  });
});

describe('impossible counts that body and receipt agree on', () => {
  it.each([
    ['usage.prompt_bytes', [100_000, 4]],
    ['usage.delivered_bytes', [7, 8000]],
    ['usage.time', [7, 8192, 8192]],
  ] as const)('are not believed: %s', async (problem, counts) => {
    harness = await startHarness();
    // Time stands still: on a busy machine, enough time could pass to make the counts plausible.
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    await expectLie((job) => reportAndSign(job, counts), problem, '/v1/chat/completions', false);
  });

  it('are accepted from a provider that writes a long answer at once', async () => {
    harness = await shared.take();
    const provider = await harness.provider({ onJob: (job) => reportAndSign(job, [7, 2000], 'x'.repeat(4000)) });
    expect((await harness.chat()).status).toBe(200);
    expect(harness.app.providers.reputations.summaryOf(provider.providerId).state).toBe('well');
  });

  it('are rejected from a model that does not think, and accepted from one that does', async () => {
    harness = await shared.take();
    const thinker = await harness.provider({
      register: (register) => ({ ...register, models: register.models.map((offer) => ({ ...offer, thinks: true })) }),
      onJob: (job) => reportAndSign(job, [7, 34, 30]),
    });
    const before = (await harness.money()).balance;
    expect((await harness.chat()).status).toBe(200);
    expect((await harness.chat({ stream: true, stream_options: { include_usage: true } })).status).toBe(200);
    await until(async () => (await harness.money()).reserved === 0 && (await harness.money()).balance < before);
    expect(harness.app.providers.reputations.summaryOf(thinker.providerId).state).toBe('well');
    thinker.close();
    await thinker.closed;
    await until(() => !harness.app.providers.models.serves(MODEL));
    const talker = await harness.provider({
      register: (register) => ({ ...register, models: register.models.map((offer) => ({ ...offer, thinks: false })) }),
      onJob: (job) => reportAndSign(job, [7, 34, 30]),
    });
    expect((await harness.chat()).status).toBe(502);
    expect(harness.jobLines().at(-1)).toMatchObject({ problem: 'usage.hidden_tokens', provider: talker.providerId });
  });
});

it('false counts in a plain answer stay unseen by the client while another provider serves the model', async () => {
  harness = await startHarness({ random: () => 0 });
  const liar = await harness.provider({ onJob: (job) => job.answerHonestly(undefined, { receipt: signed([9_000_000, 8192, 8192]) }) });
  const honest = await harness.provider();
  for (let request = 0; request < 4; request++) {
    const response = await harness.chat();
    expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, honest.providerId]);
  }
  expect(liar.jobs.size).toBeLessThanOrEqual(1);
});
