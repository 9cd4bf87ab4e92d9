/** Image URLs: full and range requests, expiry, and a fixed content type. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { generate, imageProvider, startImageHarness, urlsOf } from '../../images/pictures.js';
import type { Harness } from '../../support/harness.js';

const HOUR = 3_600_000;

describe('an image at its URL', () => {
  let harness: Harness;
  let url: string;
  let image: Buffer;
  beforeAll(async () => {
    harness = await startImageHarness();
    await imageProvider(harness);
    [url = ''] = await urlsOf(await generate(harness));
    image = Buffer.from(await (await fetch(url)).arrayBuffer());
  });
  afterAll(() => harness.close());

  it('has headers that make it private and only an image', async () => {
    const response = await fetch(url);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(image.length),
      'cache-control': expect.stringMatching(/^private, max-age=3[56]\d\d, immutable$/),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'referrer-policy': 'no-referrer',
      'accept-ranges': 'bytes',
    });
    expect(response.headers.has('set-cookie')).toBe(false);
  });

  it('needs no key, and supports HEAD', async () => {
    const head = await fetch(url, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(head.headers.get('content-length')).toBe(String(image.length));
    expect(await head.text()).toBe('');
  });

  it('supports ranges', async () => {
    const response = await fetch(url, { headers: { range: 'bytes=8-19' } });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes 8-19/${image.length}`);
    expect(response.headers.get('content-length')).toBe('12');
    expect(Buffer.from(await response.arrayBuffer())).toEqual(image.subarray(8, 20));
    const end = await fetch(url, { headers: { range: 'bytes=-4' } });
    expect(Buffer.from(await end.arrayBuffer())).toEqual(image.subarray(-4));
  });

  it('reports its length for a range beyond its end', async () => {
    const response = await fetch(url, { headers: { range: `bytes=${image.length}-` } });
    expect(response.status).toBe(416);
    expect(response.headers.get('content-range')).toBe(`bytes */${image.length}`);
    expect(response.headers.get('cache-control')).toBe('no-store');
  });

  it('comes whole for an invalid range, several ranges, and a range of another image', async () => {
    const { headers } = await fetch(url);
    const tag = headers.get('etag') ?? '';
    for (const asked of [{ range: 'bytes=x' }, { range: 'bytes=0-1,3-4' }, { range: 'bytes=0-3', 'if-range': '"another"' }]) {
      const response = await fetch(url, { headers: asked as unknown as Record<string, string> });
      expect(response.status).toBe(200);
      expect(Buffer.from(await response.arrayBuffer())).toEqual(image);
    }
    expect((await fetch(url, { headers: { range: 'bytes=0-3', 'if-range': tag } })).status).toBe(206);
    for (const known of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
      const response = await fetch(url, { headers: { 'if-none-match': known } });
      expect(response.status).toBe(304);
      expect(await response.text()).toBe('');
    }
  });

  it('exists at no other URL', async () => {
    for (const other of [
      `${url}x`,
      url.replace(/.{5}\.png$/, 'AAAAA.png'),
      url.replace('.png', '.jpg'),
      url.replace('.png', ''),
      `${harness.url}/v1/images/files/x`,
    ]) {
      const response = await fetch(other);
      expect([other, response.status]).toEqual([other, 404]);
      expect(response.headers.get('cache-control')).toBe('no-store');
    }
    expect((await fetch(`${harness.url}/v1/images/files/`)).status).toBe(404);
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(405);
  });
});

describe('expiry of an image URL', () => {
  let harness: Harness | null = null;
  afterEach(async () => {
    await harness?.close();
    harness = null;
  });

  it('removes the image, while its receipt stays readable', async () => {
    let ahead = 0;
    harness = await startImageHarness({ now: () => Date.now() + ahead });
    const { app } = harness;
    await imageProvider(harness);
    const response = await generate(harness);
    const receipt = JSON.parse(Buffer.from(response.headers.get('x-inference-receipt') ?? '', 'base64url').toString());
    const [url = ''] = await urlsOf(response);
    const receiptStatus = async (): Promise<number> => (await harness?.get(`/v1/receipts/${receipt.job_id}`))?.status ?? 0;
    expect((await fetch(url)).status).toBe(200);
    expect(await receiptStatus()).toBe(200);
    ahead = HOUR + 1000;
    const gone = await fetch(url);
    expect(gone.status).toBe(410);
    expect(await gone.json()).toMatchObject({ error: { code: 'gone' } });
    expect(await receiptStatus()).toBe(200);
    const rows = () => app.database.selectFrom('receipts').select('job_id').execute();
    expect(await rows()).toEqual([]);
  });

  it('survives a restart', async () => {
    let ahead = 0;
    const first = await startImageHarness();
    await imageProvider(first);
    const [url = ''] = await urlsOf(await generate(first));
    const path = new URL(url).pathname;
    // `close` of the harness would also delete the data directory.
    await first.app.close(200);
    harness = await startImageHarness({ config: { dataDir: first.dataDir }, now: () => Date.now() + ahead });
    expect((await fetch(harness.url + path)).status).toBe(200);
    ahead = HOUR + 1000;
    expect((await fetch(harness.url + path)).status).toBe(410);
  });

  it('uses the origin that clients use', async () => {
    harness = await startImageHarness();
    await imageProvider(harness);
    const port = new URL(harness.url).port;
    const response = await fetch(`http://localhost:${port}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${harness.apiKey}` },
      body: JSON.stringify({ prompt: 'x' }),
    });
    const [url = ''] = await urlsOf(response);
    expect(new URL(url).origin).toBe(`http://localhost:${port}`);
  });
});
