/** Requests with images in their prompts: routing, billing, size limits and refusals. */
import { createHash } from 'node:crypto';
import { MAX_REQUEST_BYTES, promptTokenBound, type Receipt, utf8, type VisionOffer } from '@inference/protocol';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { costOf } from '../../../src/billing/prices/price.js';
import type { FetchedInputImage, ImageFetcher } from '../../../src/inference/request/image-fetcher.js';
import { errorOf, type Harness, ledgerWith, MODEL, startHarness } from '../../support/harness.js';
import type { ProviderOptions, ScriptedJob, ScriptedProvider } from '../../support/scripted-provider.js';
import { openAnswer, postSealed, seal } from '../../support/sealed-calls.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
beforeEach(async () => {
  harness = await shared.take();
});
afterEach(() => harness.close());

const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAMAAACqqpYoAAAAA1BMVEXIKAqFTr2WAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAC0lEQVQImWNggAAAAAgAAa9T6iIAAAAASUVORK5CYII=';
const VISION = { max_images: 2, max_image_tokens: 1000 };
const image = (data = PNG) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } });
const asking = (...content: object[]) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, ...content] }] });

function seeing(options: ProviderOptions = {}, vision: VisionOffer = VISION): Promise<ScriptedProvider> {
  return harness.provider({ vision, ...options });
}

async function queued(): Promise<number> {
  const metrics = await (await harness.get('/metrics', harness.adminKey)).text();
  return Number(/^inference_queue_length (\d+)$/m.exec(metrics)?.[1]);
}

function fetched(bytes: Uint8Array): FetchedInputImage {
  return { mediaType: 'image/png', bytes, pixels: 6, sha256: createHash('sha256').update(bytes).digest('hex') };
}

describe('a request with images', () => {
  it('goes to machines that read as many, and waits while these are busy', async () => {
    const blind = await harness.provider();
    const jobs: ScriptedJob[] = [];
    const sighted = await seeing({ serial: 'SIGHTED', slots: 1, onJob: (job) => void jobs.push(job) });
    const first = harness.chat(asking(image()));
    await harness.until(() => jobs.length === 1);
    const second = harness.chat(asking(image(), image()));
    await harness.until(async () => (await queued()) === 1);
    jobs[0]?.answerHonestly();
    await harness.until(() => jobs.length === 2);
    jobs[1]?.answerHonestly();
    for (const response of await Promise.all([first, second])) {
      expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, sighted.providerId]);
    }
    expect(blind.begunCount).toBe(0);
    expect(jobs[1]?.lastContent).toBe('What is it?');
  });

  it('is refused by name, at no cost, where no machine reads images or so many', async () => {
    await harness.provider();
    const before = await harness.money();
    const blind = await harness.chat(asking(image()));
    expect([blind.status, await errorOf(blind)]).toEqual([
      400,
      expect.objectContaining({
        param: 'messages[0].content[1]',
        message: 'messages[0].content[1]: could not process image. This model does not see images.',
      }),
    ]);
    const source = { type: 'base64', media_type: 'image/png', data: PNG };
    const messages = [{ role: 'user', content: [{ type: 'image', source }] }];
    const asMessages = await harness.post('/v1/messages', { model: MODEL, max_tokens: 5, messages });
    expect(await asMessages.json()).toMatchObject({
      error: { type: 'invalid_request_error', message: expect.stringContaining('could not process image') },
    });
    await seeing({ serial: 'SIGHTED' });
    expect(await errorOf(await harness.chat(asking(image(), image(), image())))).toMatchObject({
      param: 'messages[0].content[3]',
      message: expect.stringMatching(/reads at most 2 images in a request/),
    });
    expect(await errorOf(await harness.chat({ ...asking(image()), provider: { ignore: ['SIGHTED'] } }))).toMatchObject({
      code: 'provider_not_available',
      message: `No connected provider of the model ${MODEL} that matches provider.ignore reads an image. Accept other providers, or leave images out.`,
    });
    expect(await harness.money()).toEqual(before);
  });

  it('is refused by name where the machines that the client names read no images', async () => {
    const blind = await harness.provider({ serial: 'BLIND' });
    const sighted = await seeing({ serial: 'SIGHTED' });
    const named: readonly (readonly [string, object, Record<string, string>])[] = [
      ['X-Inference-Provider-Id', {}, { 'x-inference-provider-id': blind.providerId }],
      ['provider_serial', { provider_serial: 'BLIND' }, {}],
      ['provider.only', { provider: { only: ['BLIND'] } }, {}],
      ['provider.order', { provider: { order: [blind.providerId], allow_fallbacks: false } }, {}],
    ];
    for (const [name, members, headers] of named) {
      const response = await harness.chat({ ...asking(image()), ...members }, { headers });
      expect([response.status, await errorOf(response)]).toEqual([
        400,
        expect.objectContaining({
          code: 'unsupported_parameter',
          param: 'messages[0].content[1]',
          message: `messages[0].content[1]: could not process image. No provider that ${name} names reads an image with this model.`,
        }),
      ]);
    }
    // A named provider that is not connected might read images.
    const only = [blind.providerId, '0'.repeat(32)];
    for (const provider of [{ only }, { order: only, allow_fallbacks: false }]) {
      expect((await harness.chat({ ...asking(image()), provider })).status).toBe(503);
    }
    // Another preference does not hide that the remaining provider reads no images.
    const ignore = [sighted.providerId];
    const ignoring = await harness.chat({ ...asking(image()), provider: { only: [blind.providerId, ...ignore], ignore } });
    expect(ignoring.status).toBe(400);
    const absent = await harness.chat({ ...asking(image()), provider_serial: 'ABSENT' });
    expect([absent.status, (await errorOf(absent)).code]).toEqual([503, 'provider_not_available']);
  });

  it('falls back to a model that reads images', async () => {
    await harness.provider();
    const register: ProviderOptions['register'] = (message) => ({ ...message, fallback_models: true });
    const other = await seeing({ models: ['test/seeing'], serial: 'SIGHTED', register });
    const response = await harness.chat({ ...asking(image()), models: ['test/seeing'] });
    expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, other.providerId]);
    expect(response.headers.get('x-inference-fallback-reason')).toBe('no_vision');
  });

  it('reserves and admits the tokens of its images, not of their base64 data', async () => {
    const jobs: ScriptedJob[] = [];
    await seeing({ onJob: (job) => void jobs.push(job) }, { max_images: 2, max_image_tokens: 500 });
    const body = { ...asking(image(), image()), stream: true, max_tokens: 1 };
    const run = async (promptTokens: (bound: number) => number): Promise<Response> => {
      const count = jobs.length;
      const response = harness.chat(body);
      await harness.until(() => jobs.length > count);
      const job = jobs[count] as ScriptedJob;
      const bound = promptTokenBound(job.body.length - 2 * PNG.length, 2 * 500);
      const { reserved } = await harness.money();
      expect(reserved).toBe(costOf(harness.app.prices.current(MODEL), { promptTokens: bound, completionTokens: 1 }));
      const prompt_tokens = promptTokens(bound);
      const receipt = (honest: Receipt): Receipt => ({
        ...honest,
        usage: { ...honest.usage, prompt_tokens, total_tokens: prompt_tokens + honest.usage.completion_tokens },
      });
      job.answerHonestly(['Yes'], { receipt });
      return response;
    };
    expect(await (await run((bound) => bound)).text()).toContain('se_signature');
    expect(await (await run((bound) => bound + 1)).text()).toContain('response_verification_failed');
    expect(harness.jobLines().at(-1)).toMatchObject({ problem: 'usage.prompt_bytes' });
  });

  it('that a machine cannot decode is an error of the part, confirmed by another machine', async () => {
    const onJob: ProviderOptions['onJob'] = (job) => job.fail({ code: 'invalid_image', param: 'messages[0].content[1]' });
    const providers = [await seeing({ onJob }), await seeing({ serial: 'OTHER', onJob })];
    const before = await harness.money();
    const response = await harness.chat(asking(image()));
    expect([response.status, await errorOf(response)]).toEqual([
      400,
      expect.objectContaining({
        param: 'messages[0].content[1]',
        message: 'messages[0].content[1]: could not process image. The machine could not decode it. Save it again as PNG or JPEG.',
      }),
    ]);
    await harness.until(() => providers.every(({ jobs }) => jobs.size === 1));
    expect(await harness.money()).toEqual(before);
  });

  it('may be larger than one of text alone', async () => {
    const jobs: ScriptedJob[] = [];
    await seeing({
      onJob: (job) => {
        jobs.push(job);
        job.answerHonestly();
      },
    });
    // Trailing bytes after the last PNG chunk are part of the file.
    const large = Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.alloc(4.5 * 2 ** 20)]).toString('base64');
    const body = JSON.stringify({ model: MODEL, ...asking(image(large), image(large)) });
    expect(body.length).toBeGreaterThan(MAX_REQUEST_BYTES);
    const answered = await harness.post('/v1/chat/completions', body);
    expect(answered.status).toBe(200);
    expect(
      createHash('sha256')
        .update(jobs[0]?.body ?? '')
        .digest('hex'),
    ).toBe(createHash('sha256').update(body).digest('hex'));
    const tooLong = await harness.chat(asking(image(), { type: 'text', text: 'x'.repeat(MAX_REQUEST_BYTES) }));
    expect([tooLong.status, (await errorOf(tooLong)).message]).toEqual([
      413,
      `The request body has more than ${MAX_REQUEST_BYTES} bytes besides its images.`,
    ]);
  });
});

it('an image whose tokens are counted for free is limited by its pixels', async () => {
  await harness.close();
  harness = await startHarness({ config: { countTokensBytesPerMinute: 6_000_000 } });
  await seeing();
  const large = Buffer.from(PNG, 'base64');
  large.writeUInt32BE(8000, 16);
  large.writeUInt32BE(5000, 20);
  const count = (...content: object[]): Promise<Response> =>
    harness.post('/v1/messages/count_tokens', { model: MODEL, messages: [{ role: 'user', content }] });
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: large.toString('base64') } };
  expect((await count(picture)).status).toBe(200);
  const refused = await count(picture);
  expect([refused.status, Number(refused.headers.get('retry-after')) > 30]).toEqual([429, true]);
  // The refused request has cost nothing of the limit.
  expect((await count({ type: 'text', text: 'x'.repeat(800_000) })).status).toBe(200);
});

it('an image at a URL is fetched and sent beside the body, and the receipt names its hash', async () => {
  await harness.close();
  const bytes = Buffer.from(PNG, 'base64');
  const urls: string[] = [];
  const fetchAll: ImageFetcher['fetchAll'] = async (all) => {
    urls.push(...all.map(({ url }) => url));
    return new Map(all.map(({ url }) => [url, fetched(bytes)]));
  };
  harness = await startHarness({ imageFetcher: { fetchAll } });
  const provider = await seeing({}, { ...VISION, max_images: 3 });
  const url = 'https://example.com/a.png';
  const part = { type: 'image_url', image_url: { url } };
  const response = await harness.chat(asking(part, image(), part));
  const receipt = JSON.parse(Buffer.from(response.headers.get('x-inference-receipt') ?? '', 'base64url').toString()) as Receipt;
  const [job] = [...provider.jobs.values()];
  expect(urls).toEqual([url]);
  expect(receipt.overrides.fetched_images).toEqual([createHash('sha256').update(bytes).digest('hex')]);
  expect(receipt.request_sha256).toBe(
    createHash('sha256')
      .update(job?.body ?? '')
      .digest('hex'),
  );
  expect(job?.message.fetched_images).toEqual([{ media_type: 'image/png', bytes: bytes.length }]);
  expect(Buffer.concat(job?.fetchedImages ?? [])).toEqual(bytes);
});

it('no image is fetched for a request that would be refused', async () => {
  await harness.close();
  let fetchCount = 0;
  const fetchAll: ImageFetcher['fetchAll'] = async (all) => {
    fetchCount++;
    return new Map(all.map(({ url }) => [url, fetched(Buffer.from(PNG, 'base64'))]));
  };
  harness = await startHarness({ imageFetcher: { fetchAll } });
  const body = asking({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } });
  expect((await errorOf(await harness.chat({ ...body, model: 'test/unknown' }))).code).toBe('model_not_found');
  await harness.provider();
  expect((await errorOf(await harness.chat(body))).message).toContain('This model does not see images.');
  await seeing({ serial: 'SIGHTED' });
  const poor = await harness.customer(0);
  const refused = await harness.chat(body, { headers: { authorization: `Bearer ${poor.apiKey}` } });
  expect([refused.status, (await errorOf(refused)).code]).toEqual([402, 'insufficient_quota']);
  expect(fetchCount).toBe(0);
  expect(harness.jobLines().map(({ reason }) => reason)).toEqual(['model_not_found', 'no_vision', 'insufficient_balance']);
  expect((await harness.chat(body)).status).toBe(200);
  expect(fetchCount).toBe(1);
});

it('a balance that cannot be read is logged, and does not refuse the request', async () => {
  await harness.close();
  const fetchAll: ImageFetcher['fetchAll'] = async (all) => new Map(all.map(({ url }) => [url, fetched(Buffer.from(PNG, 'base64'))]));
  const balance = () => Promise.reject(new Error('the database is down'));
  harness = await startHarness({ imageFetcher: { fetchAll }, wrapLedger: (ledger) => ledgerWith(ledger, { balance }) });
  await seeing();
  const response = await harness.chat(asking({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }));
  expect(response.status).toBe(200);
  expect(harness.log.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ msg: 'balance read failed', error: expect.objectContaining({ name: 'Error' }) }),
  );
});

describe('a sealed request with images', () => {
  const body = utf8(JSON.stringify(asking(image())));
  const terms = { input_images: 1, input_image_bytes: PNG.length };

  it('goes to the candidate that reads them, priced by the declared number', async () => {
    const onSealedJob: ProviderOptions['onSealedJob'] = (job) => job.answer(['ok']);
    const [blind, sighted] = [await harness.provider({ onSealedJob }), await seeing({ serial: 'SIGHTED', onSealedJob })];
    const sealed = seal([blind, sighted], terms, body);
    const answer = await openAnswer(sealed, await postSealed(harness, sealed.bytes));
    expect(answer.recipient).toBe(1);
  });

  it.each([
    ['no machine reads images', terms, { code: 'unsupported_parameter', param: 'context.input_images' }],
    ['only the number is declared', { input_images: 1 }, { param: 'context.input_image_bytes' }],
  ])('is refused where %s', async (_what, declared, error) => {
    const provider = await harness.provider();
    const response = await (async () => {
      const sealed = seal([provider], declared as typeof terms, body);
      return postSealed(harness, sealed.bytes);
    })().catch((fault: Error) => fault);
    if (response instanceof Error) expect(response.message).toContain('input_image_bytes');
    else
      expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ error: expect.objectContaining(error) })]);
  });
});
