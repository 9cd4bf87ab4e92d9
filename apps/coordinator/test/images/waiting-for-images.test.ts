/** Without an image provider, image requests wait. If a provider disconnects, its jobs are retried on others. */
import { afterEach, describe, expect, it } from 'vitest';
import { errorOf, type Harness, until } from '../support/harness.js';
import { generate, IMAGE_MODEL, imageProvider, paint, startImageHarness, urlsOf } from './pictures.js';

let harness: Harness;
afterEach(() => harness.close());

const start = async (queueMs: number): Promise<Harness> => {
  harness = await startImageHarness({ config: { images: { urlMs: 60_000, storeBytes: 10_000_000, queueMs } } });
  return harness;
};

/** Number of requests that wait for an image provider. */
async function waiting(): Promise<number> {
  const text = await (await harness.get('/metrics', harness.adminKey)).text();
  return Number(/inference_image_queue_length (\d+)/.exec(text)?.[1]);
}

describe('without an image provider', () => {
  it.each([IMAGE_MODEL, null])('a request for %s waits until one connects', async (model) => {
    await start(60_000);
    await harness.provider();
    const answer = generate(harness, { model });
    await until(async () => (await waiting()) === 1);
    await imageProvider(harness);
    const response = await answer;
    expect(response.status).toBe(200);
    expect((await fetch((await urlsOf(response))[0] ?? '')).status).toBe(200);
    expect(await waiting()).toBe(0);
  });

  it('a request gets Retry-After after the wait, and is not charged', async () => {
    await start(50);
    const { balance } = await harness.money();
    const response = await generate(harness);
    expect([response.status, (await errorOf(response)).code]).toEqual([503, 'no_provider']);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await harness.money()).toEqual({ balance, reserved: 0 });
  });

  it('a request stops waiting when its client disconnects', async () => {
    await start(60_000);
    const gone = new AbortController();
    const answer = fetch(`${harness.url}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${harness.apiKey}` },
      body: JSON.stringify({ prompt: 'x' }),
      signal: gone.signal,
    });
    const settled = answer.catch((error: unknown) => error);
    await until(async () => (await waiting()) === 1);
    gone.abort();
    await settled;
    await until(async () => (await waiting()) === 0);
  });

  it('a request stops waiting when the coordinator shuts down', async () => {
    await start(60_000);
    const answer = generate(harness);
    await until(async () => (await waiting()) === 1);
    const closed = harness.app.close(0);
    const response = await answer;
    expect([response.status, (await errorOf(response)).code]).toEqual([503, 'shutting_down']);
    await closed;
  });

  it('a request for a recently served model waits, while other models make other images', async () => {
    await start(60_000);
    await imageProvider(harness);
    const model = 'test/another-painter';
    const first = await imageProvider(harness, { models: [model] });
    first.close();
    await first.closed;
    const answer = generate(harness, { model });
    await until(async () => (await waiting()) === 1);
    const second = await imageProvider(harness, { models: [model] });
    const response = await answer;
    expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, second.providerId]);
  });

  it('an invalid request is refused as soon as a provider connects', async () => {
    await start(60_000);
    const answer = generate(harness, { model: 'test/other' });
    await until(async () => (await waiting()) === 1);
    await imageProvider(harness);
    expect((await answer).status).toBe(404);
  });
});

describe('an image provider lost during a job', () => {
  it('leaves the job to another', async () => {
    await start(60_000);
    const first = await imageProvider(harness, {
      onJob: (job) => {
        job.accept();
        job.push(new Uint8Array([1, 0, 0]));
        job.provider.close();
      },
    });
    const answer = generate(harness);
    await until(() => first.jobs.size === 1);
    const second = await imageProvider(harness);
    const response = await answer;
    expect(response.status).toBe(200);
    expect(response.headers.get('x-provider-id')).toBe(second.providerId);
  });

  it('may get the same job again after it reconnects', async () => {
    await start(60_000);
    const first = await imageProvider(harness, {
      onJob: (job) => {
        job.accept();
        job.provider.close();
      },
    });
    const answer = generate(harness);
    await first.closed;
    await until(async () => (await waiting()) === 1);
    await imageProvider(harness, { enclave: first.enclave });
    expect((await answer).status).toBe(200);
  });

  it('costs nothing when no other connects', async () => {
    await start(200);
    const { balance } = await harness.money();
    await imageProvider(harness, {
      onJob: (job) => {
        job.accept();
        job.provider.close();
      },
    });
    const response = await generate(harness);
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).not.toBeNull();
    expect(await harness.money()).toEqual({ balance, reserved: 0 });
  });
});

describe('providers of one model with different sizes', () => {
  it('get the sizes that they make', async () => {
    await start(1000);
    const small = await imageProvider(harness, { image: { sizes: ['32x32'], max_images: 1 } });
    const large = await imageProvider(harness, { image: { sizes: ['128x64'], max_images: 4 } });
    for (let times = 0; times < 4; times++) {
      expect((await generate(harness, { size: '32x32' })).headers.get('x-provider-id')).toBe(small.providerId);
      expect((await generate(harness, { size: '128x64', n: 2 })).headers.get('x-provider-id')).toBe(large.providerId);
    }
    const response = await generate(harness, { size: '32x32', n: 2 });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param: 'n', message: 'n must be at most 1 for this model and size.' });
    const sizes = await errorOf(await generate(harness, { size: '64x48' }));
    expect(sizes.message).toContain('32x32');
    expect(sizes.message).toContain('128x64');
  });

  it('a client that disconnects during image generation pays nothing', async () => {
    await start(1000);
    const gone = new AbortController();
    const { balance } = await harness.money();
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const provider = await imageProvider(harness, {
      onJob: async (job) => {
        job.accept();
        await held;
        if (!job.over) await paint(job);
      },
    });
    const answer = fetch(`${harness.url}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${harness.apiKey}` },
      body: JSON.stringify({ prompt: 'x' }),
      signal: gone.signal,
    }).catch((error: unknown) => error);
    await until(() => provider.jobs.size === 1);
    gone.abort();
    await answer;
    await until(() => [...provider.jobs.values()][0]?.over === true);
    release();
    await until(async () => (await harness.money()).reserved === 0);
    expect(await harness.money()).toEqual({ balance, reserved: 0 });
  });
});
