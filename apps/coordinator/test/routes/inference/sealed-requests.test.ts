/** `POST /v1/e2e/requests` with real sealing on both ends: delivery, settlement, refusals and errors. */
import { E2E_RESPONSE_CONTENT_TYPE, type E2eReceipt, openE2eReceipt, toBase64Url, utf8 } from '@inference/protocol';
import { generateSealingKeyPair, keyIdOf, verifyP256 } from '@inference/protocol/crypto';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { costOf, imageRates } from '../../../src/billing/prices/price.js';
import { MAX_FREE_REFUSALS } from '../../../src/inference/request/free-refusals.js';
import { pixelCount } from '../../../src/inference/request/image-job.js';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import { IMAGE_SIZES, type ScriptedProvider } from '../../support/scripted-provider.js';
import type { ScriptedSealedJob } from '../../support/scripted-sealed-job.js';
import { openAnswer, postSealed, seal } from '../../support/sealed-calls.js';
import { SharedHarness } from '../../support/shared-harness.js';

const FULL = 100_000_000;
const answers = (job: ScriptedSealedJob): void => job.answer();
const refuses = (job: ScriptedSealedJob): void => job.refuse();
/** Only accepts the job; the test sends the response itself. */
const accepts = (job: ScriptedSealedJob): void => job.accept();

const shared = new SharedHarness({ random: () => 0.5 });
afterAll(() => shared.close());

let harness: Harness;
const start = async (options?: Parameters<typeof startHarness>[0]): Promise<void> => {
  harness = options === undefined ? await shared.take() : await startHarness({ random: () => 0.5, ...options });
};
afterEach(() => harness.close());

const jobOf = (provider: ScriptedProvider): ScriptedSealedJob => [...provider.sealedJobs.values()][0] as ScriptedSealedJob;
const line = async (): Promise<Record<string, unknown>> => {
  await until(() => harness.jobLines().length === 1);
  return harness.jobLines()[0] as Record<string, unknown>;
};
const waitingCount = async (): Promise<number> => {
  const state = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { waiting_requests: number };
  return state.waiting_requests;
};
const priceOf = (completionTokens: number): number => costOf(harness.app.prices.current(MODEL), { promptTokens: 7, completionTokens });

describe('an answer', () => {
  beforeEach(() => start());

  it('is delivered whole, charged by its receipt, and the receipt can be read', async () => {
    const provider = await harness.provider({ onSealedJob: answers });
    const sealed = seal([provider]);
    const response = await postSealed(harness, sealed.bytes);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe(E2E_RESPONSE_CONTENT_TYPE);
    const jobId = response.headers.get('x-inference-job-id') ?? '';
    const answer = await openAnswer(sealed, response);
    expect(answer.head.status).toBe(200);
    expect(answer.text).toBe('{"text":"Hello there"}');
    const { value } = openE2eReceipt(answer.proof.receipt, provider.enclave.publicKey, verifyP256);
    expect(value.sealed_request_sha256).toBe(sealed.sealedRequestSha256);
    expect(await harness.money()).toEqual({ balance: FULL - priceOf(2), reserved: 0 });
    const stored = (await (await harness.get(`/v1/receipts/${jobId}`)).json()) as { claims: unknown; response_hash: string };
    expect(stored.claims).toEqual(value);
    expect(stored.response_hash).toBe(value.sealed_response_sha256);
    expect(await line()).toMatchObject({ sealed: true, status: 'delivered' });
  });

  it('is streamed as its frames come', async () => {
    const provider = await harness.provider({ onSealedJob: answers });
    const sealed = seal([provider], { stream: true });
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.head.content_type).toContain('text/event-stream');
    expect(answer.text).toBe('data: "Hello"\n\ndata: " there"\n\n');
    expect(await harness.money()).toEqual({ balance: FULL - priceOf(2), reserved: 0 });
  });

  it.each(['/v1/completions', '/v1/responses', '/v1/messages'] as const)('has any format: %s', async (endpoint) => {
    const provider = await harness.provider({ onSealedJob: answers });
    const sealed = seal([provider], { endpoint });
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.text).toBe('{"text":"Hello there"}');
    expect(jobOf(provider).context.endpoint).toBe(endpoint);
  });

  it('to token counting is free', async () => {
    const provider = await harness.provider({ onSealedJob: (job) => job.answer([]) });
    const sealed = seal([provider], { endpoint: '/v1/messages/count_tokens' });
    await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(await harness.money()).toEqual({ balance: FULL, reserved: 0 });
  });

  it('with images is delivered with each of them', async () => {
    const image = { sizes: [...IMAGE_SIZES], max_images: 4 };
    const provider = await harness.provider({ image, onSealedJob: (job) => job.answerImages([utf8('one'), utf8('two')]) });
    const sealed = seal([provider], { endpoint: '/v1/images/generations', images: 2 });
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.images.map((bytes) => String.fromCharCode(...bytes))).toEqual(['one', 'two']);
    expect((await harness.money()).reserved).toBe(0);
    expect(await line()).toMatchObject({ status: 'delivered', images: 2 });
  });
});

describe('images', () => {
  const image = { sizes: [...IMAGE_SIZES], max_images: 4 };
  const unfit = { code: 'provider_not_available', param: 'context.image_size' };
  const imageCost = (size: string): number => {
    const price = harness.app.prices.current(MODEL);
    const rated = { ...price, ...imageRates(price, pixelCount(size)) };
    return costOf(rated, { promptTokens: 7, completionTokens: 0, images: 2 });
  };

  it.each([
    ['the size that the context names', '32x32', '32x32'],
    ['the largest size on offer, where the context names none', undefined, '64x48'],
  ])('cost %s', async (_what, image_size, charged) => {
    await start();
    const provider = await harness.provider({ image, onSealedJob: (job) => job.answerImages([utf8('one'), utf8('two')]) });
    const named = image_size === undefined ? {} : { image_size };
    const sealed = seal([provider], { endpoint: '/v1/images/generations', images: 2, ...named });
    // A balance equal to the cost suffices.
    const { accountId, apiKey } = await harness.customer(imageCost(charged));
    await openAnswer(sealed, await postSealed({ url: harness.url, apiKey }, sealed.bytes));
    expect(await harness.money(accountId)).toEqual({ balance: 0, reserved: 0 });
  });

  it.each([undefined, '32x32'])('never come from a provider that states no sizes (named size: %s)', async (image_size) => {
    await start();
    const provider = await harness.provider({
      image,
      register: (register) => ({ ...register, models: register.models.map(({ image: _, ...offer }) => offer) }),
      onSealedJob: (job) => job.answerImages([utf8('one'), utf8('two')]),
    });
    const named = image_size === undefined ? {} : { image_size };
    const sealed = seal([provider], { endpoint: '/v1/images/generations', images: 2, ...named });
    const response = await postSealed(harness, sealed.bytes);
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([503, 'false']);
    expect(await errorOf(response)).toMatchObject(unfit);
    expect(provider.sealedJobs.size).toBe(0);
    expect(await harness.money()).toEqual({ balance: FULL, reserved: 0 });
    expect(await line()).toMatchObject({ reason: 'unfit_for_images' });
  });

  it('never come from a provider with a size above the one charged', async () => {
    await start();
    const provider = await harness.provider({ image, slots: 1, onSealedJob: accepts });
    const terms = { endpoint: '/v1/images/generations', images: 2 } as const;
    const first = postSealed(harness, seal([provider], terms).bytes);
    await until(() => provider.sealedJobs.size === 1);
    const second = postSealed(harness, seal([provider], terms).bytes);
    await until(async () => (await waitingCount()) === 1);
    // The second request waits at the price of the sizes known so far.
    const models = provider.offers([MODEL]).map((offer) => ({ ...offer, image: { ...image, sizes: ['1024x1024'] } }));
    provider.send({ type: 'models', models });
    await until(() => harness.app.providers.models.imageOffersOf(MODEL)[0]?.sizes[0] === '1024x1024');
    jobOf(provider).answerImages([utf8('one'), utf8('two')]);
    expect((await first).status).toBe(200);
    expect((await second).status).toBe(503);
    expect(await errorOf(await second)).toMatchObject(unfit);
    expect(provider.sealedJobs.size).toBe(1);
    expect((await harness.money()).reserved).toBe(0);
  });
});

describe('money', () => {
  beforeEach(() => start());

  it('for the named maximums is reserved first', async () => {
    const provider = await harness.provider({ onSealedJob: accepts });
    const { apiKey } = await harness.customer(1);
    const sealed = seal([provider], { max_tokens: 4000 });
    const response = await postSealed({ url: harness.url, apiKey }, sealed.bytes);
    expect(response.status).toBe(402);
    expect((await errorOf(response)).message).toContain('4000 output tokens');
    expect(provider.sealedJobs.size).toBe(0);
  });

  it.each<[string, (receipt: E2eReceipt) => E2eReceipt]>([
    [
      'receipt.usage.completion_tokens',
      (receipt) => ({ ...receipt, usage: { prompt_tokens: 7, completion_tokens: 90, total_tokens: 97 }, hidden_tokens: 0 }),
    ],
    ['receipt.response_bytes', (receipt) => ({ ...receipt, response_bytes: 1_000_000 })],
    ['receipt.context_sha256', (receipt) => ({ ...receipt, context_sha256: '0'.repeat(64) })],
    ['receipt.sealed_request_sha256', (receipt) => ({ ...receipt, sealed_request_sha256: '0'.repeat(64) })],
    ['receipt.sealed_response_sha256', (receipt) => ({ ...receipt, sealed_response_sha256: '0'.repeat(64) })],
    ['receipt.job_id', (receipt) => ({ ...receipt, job_id: '7f2c8a4e-0b1d-4c3e-9f5a-6b7c8d9e0f10' as E2eReceipt['job_id'] })],
  ])('is not taken for a false receipt: %s', async (problem, change) => {
    const provider = await harness.provider({ onSealedJob: (job) => job.answer(undefined, { receipt: change }) });
    const sealed = seal([provider], { max_tokens: 80 });
    const response = await postSealed(harness, sealed.bytes);
    expect(response.status).toBe(502);
    expect((await errorOf(response)).code).toBe('response_verification_failed');
    expect(await harness.money()).toEqual({ balance: FULL, reserved: 0 });
    expect(await line()).toMatchObject({ problem });
  });

  it('for a cancelled stream is the share of the delivered ciphertext', async () => {
    const provider = await harness.provider({
      onSealedJob: (job) => {
        job.tokens = 50;
        job.begin(['data: "a"\n\n'.repeat(40)]);
      },
    });
    const leaving = new AbortController();
    const sealed = seal([provider], { stream: true });
    const response = await postSealed(harness, sealed.bytes, { signal: leaving.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    leaving.abort();
    await reader?.read().catch(() => {});
    expect(await line()).toMatchObject({ status: 'client_gone' });
    await until(async () => (await harness.money()).reserved === 0);
    const paid = FULL - (await harness.money()).balance;
    expect(paid).toBeGreaterThan(0);
    expect(paid).toBeLessThanOrEqual(priceOf(50));
  });
});

describe('candidates', () => {
  it('are the only providers asked for the model', async () => {
    await start();
    const [other, candidate] = [await harness.provider({ onSealedJob: answers }), await harness.provider({ onSealedJob: answers })];
    for (let index = 0; index < 3; index++) {
      const sealed = seal([candidate]);
      await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    }
    expect(other.sealedJobs.size).toBe(0);
    expect(candidate.sealedJobs.size).toBe(3);
  });

  it.each([true, false])('that vanish are followed by the others (stream: %s)', async (stream) => {
    await start({ random: () => 0 });
    const leaves = (job: ScriptedSealedJob): void => job.provider.close();
    const [first, second] = [await harness.provider({ onSealedJob: leaves }), await harness.provider({ onSealedJob: answers })];
    const sealed = seal([first, second], { stream });
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.recipient).toBe(1);
    expect(await harness.money()).toEqual({ balance: FULL - priceOf(2), reserved: 0 });
  });

  it('that are late are overtaken by an idle one', async () => {
    await start({ random: () => 0, jobTimings: { lateMs: 50 } });
    const [late, good] = [await harness.provider({ onSealedJob: accepts }), await harness.provider({ onSealedJob: answers })];
    const sealed = seal([late, good], { stream: true });
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.recipient).toBe(1);
    await until(() => jobOf(late).isCancelled);
    expect(await line()).toMatchObject({ attempt_outcomes: ['first overtaken', 'hedge answered'] });
  });

  it('whose keys are gone lead to a problem that says so', async () => {
    await start();
    const provider = await harness.provider({ onSealedJob: answers });
    const sealed = seal([provider]);
    provider.close();
    await harness.provider({ onSealedJob: answers });
    await until(async () => {
      const { providers } = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { providers: unknown[] };
      return providers.length === 1;
    });
    const response = await postSealed(harness, sealed.bytes);
    expect(response.status).toBe(422);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(await response.json()).toMatchObject({ type: 'urn:inference:e2e:stale-key', status: 422, code: 'stale_key' });
    expect(await harness.money()).toEqual({ balance: FULL, reserved: 0 });
  });

  it('without the end-to-end mode are never asked', async () => {
    await start();
    const provider = await harness.provider();
    const response = await postSealed(harness, seal([provider]).bytes);
    expect(response.status).toBe(422);
    expect(provider.begunCount).toBe(0);
  });

  it('that cannot open the request are not blamed, and the client is told', async () => {
    await start();
    const provider = await harness.provider({ onSealedJob: answers });
    const { bytes } = seal([provider]);
    // Only a provider that decrypts can notice a changed last byte of the ciphertext.
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
    const response = await postSealed(harness, bytes);
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).toContain('could open');
    expect(harness.app.providers.reputations.summaryOf(provider.providerId)).toMatchObject({ state: 'well', recentFailures: 0 });
  });
});

describe('a stream that fails', () => {
  it('after its beginning ends with an abort in clear', async () => {
    await start();
    const provider = await harness.provider({ onSealedJob: (job) => job.begin(['data: "a"\n\n']) });
    const sealed = seal([provider], { stream: true });
    const response = await postSealed(harness, sealed.bytes);
    const reader = response.body?.getReader();
    const chunks = [(await reader?.read())?.value ?? new Uint8Array()];
    provider.close();
    for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) chunks.push(read.value);
    const opener = sealed.candidates[0]?.answerOpener();
    const { abort } = opener?.push(Buffer.concat(chunks)) ?? {};
    expect(abort).toMatchObject({ status: 502, code: 'provider_failed' });
    expect(await harness.money()).toEqual({ balance: FULL, reserved: 0 });
  });

  it('in verification ends without its final frame', async () => {
    await start();
    const forge = (receipt: E2eReceipt): E2eReceipt => ({ ...receipt, context_sha256: '0'.repeat(64) });
    const provider = await harness.provider({ onSealedJob: (job) => job.answer(undefined, { receipt: forge }) });
    const sealed = seal([provider], { stream: true });
    const response = await postSealed(harness, sealed.bytes);
    const opener = sealed.candidates[0]?.answerOpener();
    const { abort, parts } = opener?.push(new Uint8Array(await response.arrayBuffer())) ?? {};
    expect(abort).toMatchObject({ code: 'bad_signature' });
    expect(parts?.some(({ kind }) => kind === 'proof')).toBe(false);
  });

  it('before its first content, but after its headers, still names the reason', async () => {
    await start({ jobTimings: { commitMs: 20, firstContentMs: 200 } });
    const provider = await harness.provider({ onSealedJob: accepts });
    const sealed = seal([provider], { stream: true });
    const response = await postSealed(harness, sealed.bytes);
    expect(response.status).toBe(200);
    const { abort } = sealed.candidates[0]?.answerOpener().push(new Uint8Array(await response.arrayBuffer())) ?? {};
    expect(abort).toMatchObject({ status: 504, code: 'provider_timeout' });
  });
});

describe('a refusal', () => {
  it('is delivered sealed and costs nothing', async () => {
    await start();
    const provider = await harness.provider({ onSealedJob: refuses });
    const sealed = seal([provider]);
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.head.status).toBe(400);
    expect(await harness.money()).toEqual({ balance: FULL, reserved: 0 });
    expect(await line()).toMatchObject({ status: 'refused', cost_micro_usd: 0 });
  });

  it('is free so often per key and hour', async () => {
    await start();
    const provider = await harness.provider({ onSealedJob: refuses });
    for (let index = 0; index < MAX_FREE_REFUSALS; index++) {
      const sealed = seal([provider]);
      expect((await postSealed(harness, sealed.bytes)).status).toBe(200);
    }
    const response = await postSealed(harness, seal([provider]).bytes);
    expect(response.status).toBe(429);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(3000);
    expect((await harness.chat()).status).not.toBe(429);
  });

  it('that is free too often costs nothing of the limit on token counting', async () => {
    await start({ config: { countTokensBytesPerMinute: 1000 } });
    const provider = await harness.provider({ onSealedJob: refuses });
    for (let index = 0; index < MAX_FREE_REFUSALS; index++) await postSealed(harness, seal([provider]).bytes);
    const counting = await postSealed(harness, seal([provider], { endpoint: '/v1/messages/count_tokens' }).bytes);
    expect([counting.status, (await errorOf(counting)).message]).toEqual([429, expect.stringContaining('refused too many')]);
    const messages = [{ role: 'user', content: 'x'.repeat(800) }];
    expect((await harness.post('/v1/messages/count_tokens', { model: MODEL, messages })).status).toBe(200);
  });

  it('is sometimes checked by a second candidate, and a contradiction counts', async () => {
    await start({ random: () => 0 });
    const [first, second] = [await harness.provider({ onSealedJob: refuses }), await harness.provider({ onSealedJob: answers })];
    const sealed = seal([first, second]);
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.recipient).toBe(1);
    expect(answer.head.status).toBe(200);
    await until(() => harness.app.providers.reputations.summaryOf(first.providerId)?.recentFailures === 1);
  });

  it('that a second candidate confirms is delivered', async () => {
    await start({ random: () => 0 });
    const providers = [await harness.provider({ onSealedJob: refuses }), await harness.provider({ onSealedJob: refuses })];
    const sealed = seal(providers);
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.head.status).toBe(400);
    expect(harness.app.providers.reputations.summaryOf((providers[0] as ScriptedProvider).providerId)?.recentFailures ?? 0).toBe(0);
  });
});

describe('a request', () => {
  beforeEach(() => start());

  it('is taken once per account', async () => {
    const provider = await harness.provider({ onSealedJob: answers });
    const { bytes } = seal([provider]);
    expect((await postSealed(harness, bytes)).status).toBe(200);
    const again = await postSealed(harness, bytes);
    expect(again.status).toBe(409);
    expect((await errorOf(again)).code).toBe('sealed_request_replayed');
    const nonce = toBase64Url(new Uint8Array(32).fill(7));
    expect((await postSealed(harness, seal([provider], { nonce }).bytes)).status).toBe(200);
    const { apiKey } = await harness.customer(FULL);
    expect((await postSealed({ url: harness.url, apiKey }, seal([provider], { nonce }).bytes)).status).toBe(200);
  });

  it('that comes twice at once runs once, and the replay leaves no reservation', async () => {
    const provider = await harness.provider({ onSealedJob: answers });
    const { bytes } = seal([provider]);
    const statuses = (await Promise.all([1, 2, 3].map(() => postSealed(harness, bytes)))).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 409, 409]);
    expect(provider.sealedJobs.size).toBe(1);
    expect(await harness.money()).toEqual({ balance: FULL - priceOf(2), reserved: 0 });
  });

  it('to token counting is taken once too', async () => {
    const provider = await harness.provider({ onSealedJob: (job) => job.answer([]) });
    const { bytes } = seal([provider], { endpoint: '/v1/messages/count_tokens' });
    expect([(await postSealed(harness, bytes)).status, (await postSealed(harness, bytes)).status]).toEqual([200, 409]);
    expect(provider.sealedJobs.size).toBe(1);
  });

  it('without enough money may come again once there is some', async () => {
    const provider = await harness.provider({ onSealedJob: answers });
    const { accountId, apiKey } = await harness.customer(1);
    const { bytes } = seal([provider]);
    expect((await postSealed({ url: harness.url, apiKey }, bytes)).status).toBe(402);
    const amount = microUsd(FULL);
    await harness.app.ledger.deposit({ eventId: 'more', accountId, amount, source: 'admin', at: Date.now() });
    expect((await postSealed({ url: harness.url, apiKey }, bytes)).status).toBe(200);
  });

  it('needs an API key, its content type and a served model', async () => {
    const provider = await harness.provider({ onSealedJob: answers });
    const { bytes } = seal([provider]);
    expect((await postSealed({ url: harness.url, apiKey: 'wrong' }, bytes)).status).toBe(401);
    expect((await postSealed(harness, bytes, { headers: { 'content-type': 'application/json' } })).status).toBe(415);
    expect((await postSealed(harness, seal([provider], { model: 'other' }).bytes)).status).toBe(404);
  });

  it.each<[string, (bytes: Uint8Array) => Uint8Array, string]>([
    ['empty', () => new Uint8Array(), 'truncated'],
    ['no sealed request', () => utf8('{"model":"m"}'), 'malformed'],
    ['cut off', (bytes) => bytes.subarray(0, bytes.length - 1), 'truncated'],
    ['longer than its frames', (bytes) => Buffer.concat([bytes, Buffer.from([0])]), 'after_final'],
    ['of another version', (bytes) => bytes.with(4, 2), 'malformed'],
  ])('that is %s is refused', async (_what, change, code) => {
    const provider = await harness.provider({ onSealedJob: answers });
    const response = await postSealed(harness, change(seal([provider]).bytes));
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).toContain(`(${code})`);
    expect(provider.sealedJobs.size).toBe(0);
  });

  it.each<[string, Parameters<typeof seal>[1]]>([
    ['context.expires_at', { issued_at: Date.now() - 3_600_000, expires_at: Date.now() - 1_800_000 }],
    ['context.issued_at', { issued_at: Date.now() + 3_600_000, expires_at: Date.now() + 3_700_000 }],
    ['context.expires_at', { expires_at: Date.now() + 7_200_000 }],
  ])('with a bad time names it: %s', async (param, terms) => {
    const provider = await harness.provider({ onSealedJob: answers });
    const response = await postSealed(harness, seal([provider], terms).bytes);
    expect(response.status).toBe(400);
    expect((await errorOf(response)).param).toBe(param);
  });

  it.each([
    ['context.max_tokens', '"max_tokens":100', '"max_tokens":"1"'],
    ['context.stream', '"stream":false', '"stream":12345'],
    ['context.v', '"v":1', '"v":2'],
    ['context.recipients.0.key_id', '"key_id":"', '"key_id":"/'],
  ])('with a bad member of the context names it: %s', async (param, from, to) => {
    const provider = await harness.provider({ onSealedJob: answers });
    const { bytes } = seal([provider]);
    const text = Buffer.from(bytes).toString('latin1');
    const at = text.indexOf(from);
    const changed = text.slice(0, at) + to + text.slice(at + to.length);
    const response = await postSealed(harness, Buffer.from(changed, 'latin1'));
    expect(response.status).toBe(400);
    expect((await errorOf(response)).param).toBe(param);
  });

  it('with a changed context is refused by the candidate', async () => {
    const provider = await harness.provider({ onSealedJob: answers });
    const { bytes } = seal([provider], { max_tokens: 100 });
    const text = Buffer.from(bytes).toString('latin1').replace('"max_tokens":100', '"max_tokens":999');
    const response = await postSealed(harness, Buffer.from(text, 'latin1'));
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).toContain('could open');
  });
});

it('opens with the key before the newest one, until its end', async () => {
  await start();
  const provider = await harness.provider({ onSealedJob: answers });
  const sealed = seal([provider]);
  const opened = provider.sealingKey;
  provider.sealingKey = generateSealingKeyPair();
  provider.send({ type: 'key_update', key: provider.keyStatement() });
  await until(() => harness.app.providers.snapshot(provider.providerId)?.key?.keyId === keyIdOf(provider.sealingKey.publicKey));
  // The scripted provider holds one private key. Here it is the older one, as the request was sealed to it.
  provider.sealingKey = opened;
  await openAnswer(sealed, await postSealed(harness, sealed.bytes));
});
