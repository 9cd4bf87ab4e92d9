/** Image generation through the coordinator: from the request of an SDK to verified, paid and downloadable images. */
import { createHash } from 'node:crypto';
import { type Receipt, toBase64 } from '@inference/protocol';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesHolding } from '../../../../test/support/files-holding.js';
import { sharedSecret } from '../../src/database/secret-repository.js';
import { pseudonyms } from '../../src/telemetry/statistics/pseudonym.js';
import { LEADERBOARD_SECRET } from '../../src/telemetry/statistics/public-statistics.js';
import { errorOf, type Harness, MODEL, NO_RATE_LIMITS, until } from '../support/harness.js';
import { expectSignedPlain } from '../support/inference-calls.js';
import { generate, IMAGE_MODEL, imageProvider, OWN_SIZE, picture, SMALL_SIZE, sdk, startImageHarness, urlsOf } from './pictures.js';

const PATH = '/v1/images/generations';
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

let harness: Harness;
beforeAll(async () => {
  harness = await startImageHarness({ config: { rateLimits: NO_RATE_LIMITS } });
  await imageProvider(harness);
  await harness.provider();
});
afterAll(() => harness.close());

describe('images by URL', () => {
  it('work with the unmodified openai client and can be fetched repeatedly', async () => {
    const { data, created } = await sdk(harness).images.generate({ model: IMAGE_MODEL, prompt: 'a red square', n: 2 });
    expect(created).toBeGreaterThan(1_700_000_000);
    expect(data).toHaveLength(2);
    const urls = (data ?? []).map(({ url }) => url ?? '');
    expect(new Set(urls).size).toBe(2);
    for (const url of [...urls, ...urls]) {
      expect(url.startsWith(`${harness.url}/v1/images/files/`)).toBe(true);
      const response = await fetch(url);
      expect(response.status).toBe(200);
      const metadata = await sharp(Buffer.from(await response.arrayBuffer())).metadata();
      expect(metadata).toMatchObject({ format: 'png', width: 64, height: 48 });
    }
  });

  it('are named by a signed receipt, which is stored', async () => {
    const { answer, receipt } = await expectSignedPlain(await generate(harness, { n: 2, size: SMALL_SIZE }), PATH);
    const urls = (answer.data as { url: string }[]).map(({ url }) => url);
    const hashes = await Promise.all(urls.map(async (url) => sha256(new Uint8Array(await (await fetch(url)).arrayBuffer()))));
    expect(receipt).toMatchObject({
      model: IMAGE_MODEL,
      image_sha256: hashes,
      overrides: { image_urls: urls },
      usage: { completion_tokens: 0, images: 2 },
    });
    const kept = (await (await harness.get(`/v1/receipts/${receipt.job_id}`)).json()) as { claims: Receipt };
    expect(kept.claims).toEqual(receipt);
    const stranger = await harness.customer(0);
    expect((await harness.get(`/v1/receipts/${receipt.job_id}`, stranger.apiKey)).status).toBe(404);
  });

  it.each([
    ['png', 'image/png', '.png'],
    ['jpeg', 'image/jpeg', '.jpg'],
    ['webp', 'image/webp', '.webp'],
  ] as const)('are %s when that is asked for', async (format, type, extension) => {
    const [url = ''] = await urlsOf(await generate(harness, { output_format: format }));
    expect(url.endsWith(extension)).toBe(true);
    const response = await fetch(url);
    expect(response.headers.get('content-type')).toBe(type);
    expect((await sharp(Buffer.from(await response.arrayBuffer())).metadata()).format).toBe(format);
  });
});

describe('images in the response', () => {
  it('work with the openai client, with their hashes in the receipt', async () => {
    const request = { model: IMAGE_MODEL, prompt: 'a red square', n: 2, response_format: 'b64_json' } as const;
    const { data, response } = await sdk(harness).images.generate(request).withResponse();
    const images = (data.data ?? []).map(({ b64_json }) => Buffer.from(b64_json ?? '', 'base64'));
    expect(images).toHaveLength(2);
    const receipt = JSON.parse(Buffer.from(response.headers.get('x-inference-receipt') ?? '', 'base64url').toString()) as Receipt;
    expect(receipt.image_sha256).toEqual(images.map(sha256));
    expect(receipt.overrides).toEqual({});
    const kept = (await (await harness.get(`/v1/receipts/${receipt.job_id}`)).json()) as { claims: Receipt };
    expect(kept.claims).toEqual(receipt);
  });
});

describe('the request', () => {
  it('may omit the model: a served one is chosen and named in the receipt', async () => {
    const { receipt } = await expectSignedPlain(await harness.post(PATH, { prompt: 'x' }), PATH);
    expect(receipt.model).toBe(IMAGE_MODEL);
  });

  it.each([
    [null, OWN_SIZE],
    ['auto', OWN_SIZE],
    [SMALL_SIZE, SMALL_SIZE],
  ])('size %s comes out as %s', async (size, made) => {
    const { answer } = await expectSignedPlain(await generate(harness, { size }), PATH);
    expect(answer.size).toBe(made);
  });

  it.each([
    ['size', { size: '512x512' }],
    ['size', { size: '0x0' }],
    ['size', { size: '63x47' }],
    ['size', { size: '-64x48' }],
    ['size', { size: '99999x99999' }],
    ['n', { n: 0 }],
    ['n', { n: 1.5 }],
    ['n', { n: 1000 }],
    ['prompt', { prompt: '' }],
    ['prompt', { prompt: 'x'.repeat(100_000) }],
    ['output_format', { output_format: 'bmp' }],
    ['stream', { stream: true }],
  ])('is a 400 that names %s: %j', async (param, body) => {
    const response = await generate(harness, body);
    expect(response.status).toBe(400);
    expect((await errorOf(response)).param).toBe(param);
  });

  it('is answered with the possible sizes', async () => {
    const { message } = await errorOf(await generate(harness, { size: '512x512' }));
    expect(message).toBe(`size must be one of those that this model makes: ${OWN_SIZE}, ${SMALL_SIZE}.`);
  });

  it('must use a model of the right type', async () => {
    const image = await generate(harness, { model: MODEL });
    expect(image.status).toBe(400);
    expect(await errorOf(image)).toMatchObject({ param: 'model', message: 'This model makes no images.' });
    for (const [path, body] of [
      ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
      ['/v1/completions', { prompt: 'x' }],
      ['/v1/embeddings', { input: 'x' }],
    ] as const) {
      const text = await harness.post(path, { model: IMAGE_MODEL, ...body });
      expect(text.status).toBe(400);
      expect(await errorOf(text)).toMatchObject({ param: 'model', message: 'This model makes images. Use it at /v1/images/generations.' });
    }
    expect((await generate(harness, { model: 'nobody/has-this' })).status).toBe(404);
  });

  it('needs a key', async () => {
    expect((await harness.post(PATH, { prompt: 'x' }, { 'x-api-key': 'service-wrong' })).status).toBe(401);
  });

  it('honours routing preferences, or refuses them by name', async () => {
    const any = await generate(harness);
    const id = any.headers.get('x-provider-id') ?? '';
    const named = await generate(harness, { provider: { only: [id], max_price: { image: 1_000, prompt: 0 } } });
    expect([named.status, named.headers.get('x-provider-id')]).toEqual([200, id]);
    expect(named.headers.get('x-inference-routing')).toBe('only, max_price');
    expect(named.headers.get('x-inference-ignored')).toBeNull();
    const refusal = async (body: object) => {
      const response = await generate(harness, { ...body });
      const { code, param } = await errorOf(response);
      return [response.status, code, param];
    };
    expect(await refusal({ provider: { only: ['ABSENT'] } })).toEqual([503, 'provider_not_available', 'provider.only']);
    expect(await refusal({ provider: { ignore: [id] } })).toEqual([503, 'provider_not_available', 'provider.ignore']);
    expect(await refusal({ provider: { max_price: { image: 0 } } })).toEqual([400, 'invalid_request', 'provider.max_price.image']);
    expect(await refusal({ provider: { zdr: true } })).toEqual([400, expect.any(String), 'provider.zdr']);
    expect(await refusal({ models: [MODEL] })).toEqual([400, expect.any(String), 'models']);
  });

  it('is refused when the response would be too large', async () => {
    const big = await imageProvider(harness, { models: ['test/big'], image: { sizes: ['2048x2048'], max_images: 4 } });
    const response = await generate(harness, { model: 'test/big', n: 4, response_format: 'b64_json' });
    expect(response.status).toBe(400);
    expect((await errorOf(response)).param).toBe('response_format');
    big.close();
  });
});

describe('billing of images', () => {
  it('depends on count and pixels only', async () => {
    const { accountId, apiKey } = await harness.customer(1000);
    const perImage = harness.app.prices.current(IMAGE_MODEL).perImage;
    const cost = 2 * Math.ceil((perImage * 64 * 48) / (1024 * 1024));
    expect(cost).toBeGreaterThan(0);
    const response = await harness.post(PATH, { prompt: 'x', n: 2, model: IMAGE_MODEL }, { 'x-api-key': apiKey });
    expect(response.headers.get('x-inference-cost-micro-usd')).toBe(String(cost));
    expect(await harness.money(accountId)).toEqual({ balance: 1000 - cost, reserved: 0 });
    const { usage } = (await (await harness.get('/v1/payments/usage', apiKey)).json()) as { usage: Record<string, unknown>[] };
    const counts = { prompt_tokens: 7, completion_tokens: 0, images: 2 };
    expect(usage).toEqual([expect.objectContaining({ model: IMAGE_MODEL, ...counts, cost_micro_usd: cost })]);
    const job = await harness.app.database
      .selectFrom('jobs')
      .select(['images', 'earned', 'fee'])
      .where('account_id', '=', accountId)
      .executeTakeFirstOrThrow();
    expect(job).toEqual({ images: 2, earned: Math.floor(cost * 0.9), fee: cost - Math.floor(cost * 0.9) });
  });

  it('requires a balance before placement', async () => {
    const { apiKey } = await harness.customer(0);
    const response = await harness.post(PATH, { prompt: 'x', n: 3, model: IMAGE_MODEL }, { 'x-api-key': apiKey });
    expect(response.status).toBe(402);
    expect((await errorOf(response)).message).toContain('3 images (n)');
  });

  it('counts the job for its provider', async () => {
    const before = (await (await harness.get('/v1/network/totals', null)).json()) as { jobs: number };
    expect(before).toHaveProperty('jobs');
    const { receipt } = await expectSignedPlain(await generate(harness), PATH);
    const row = await harness.app.database
      .selectFrom('jobs')
      .select(['state', 'earner'])
      .where('job_id', '=', receipt.job_id)
      .executeTakeFirstOrThrow();
    expect(row.state).toBe('settled');
    expect(row.earner).not.toBeNull();
  });

  it('lists the owner on the leaderboard, with the earnings', async () => {
    const { accountId: owner } = await harness.customer(0);
    const { accountId, apiKey } = await harness.customer(1000);
    const machine = await imageProvider(harness, { models: ['test/ranked'], image: { sizes: [OWN_SIZE], max_images: 4 } });
    await harness.app.ledger.linkProvider(machine.providerId, owner, Date.now());
    const response = await harness.post(PATH, { prompt: 'x', n: 2, model: 'test/ranked' }, { 'x-api-key': apiKey });
    expect(response.status).toBe(200);
    const paid = 1000 - (await harness.money(accountId)).balance;
    const nameOf = pseudonyms(await sharedSecret(harness.app.database, LEADERBOARD_SECRET));
    const board = (await (await harness.get('/v1/leaderboard?metric=jobs&window=24h', null)).json()) as { entries: object[] };
    expect(board.entries).toContainEqual(
      expect.objectContaining({ pseudonym: nameOf(owner), jobs: 1, tokens: 7, earnings_micro_usd: Math.floor(paid * 0.9) }),
    );
    machine.close();
  });
});

describe('image models', () => {
  it('are listed as image models, with their sizes', async () => {
    const { data } = (await (await harness.get('/v1/models')).json()) as { data: { id: string; metadata: object }[] };
    expect(data.find(({ id }) => id === IMAGE_MODEL)?.metadata).toMatchObject({
      model_type: 'image',
      sizes: [OWN_SIZE, SMALL_SIZE],
      max_images: 4,
    });
    expect(data.find(({ id }) => id === MODEL)?.metadata).not.toHaveProperty('sizes');
  });

  it('are counted per image', async () => {
    const read = async (): Promise<number> => {
      const text = await (await harness.get('/metrics', harness.adminKey)).text();
      return Number(/inference_images_total\{model="test\/image-1"\} (\d+)/.exec(text)?.[1] ?? 0);
    };
    const before = await read();
    await generate(harness, { n: 3 });
    expect(await read()).toBe(before + 3);
  });
});

describe('client content', () => {
  it('appears only in the response: no prompt, image, URL or key elsewhere', async () => {
    const canary = 'canary-7d3f a lighthouse nobody must see';
    const image = await picture(OWN_SIZE, 'png', '#123456');
    const painter = await imageProvider(harness, { models: ['test/canary'], onJob: (job) => job.answerImages([image]) });
    const [url = ''] = await urlsOf(await generate(harness, { prompt: canary, model: 'test/canary' }));
    await generate(harness, { prompt: canary, model: 'test/canary', response_format: 'b64_json' });
    await generate(harness, { prompt: canary, model: 'test/canary', size: canary });
    await (await fetch(url)).arrayBuffer();
    await fetch(`${url}${canary.slice(0, 11)}`);
    await until(() => harness.jobLines().filter(({ model }) => model === 'test/canary').length === 2);
    painter.close();
    const token = url.split('/').at(-1)?.slice(0, 72) ?? '';
    const secrets = ['canary-7d3f', token, toBase64(image).slice(-60)];
    expect(secrets.every(({ length }) => length > 10)).toBe(true);
    for (const line of harness.log) for (const secret of secrets) expect(line).not.toContain(secret);
    const isWritten = async (): Promise<boolean> => {
      const rows = await harness.app.database.selectFrom('receipts').select('receipt').execute();
      const claims = rows.map(({ receipt }) => JSON.parse(Buffer.from(receipt, 'base64url').toString()) as Receipt);
      return claims.some(({ model, overrides }) => model === 'test/canary' && overrides.image_urls === undefined);
    };
    // Receipts without URLs are stored at once, receipts with URLs are not.
    await until(isWritten);
    expect(filesHolding(harness.dataDir, '')).not.toEqual([]);
    for (const secret of [...secrets, Buffer.from(token, 'base64url').subarray(0, 32), Buffer.from(image.subarray(40, 80))]) {
      expect(filesHolding(harness.dataDir, secret)).toEqual([]);
    }
  });
});
