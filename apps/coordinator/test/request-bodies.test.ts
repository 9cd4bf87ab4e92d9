/** Bodies of requests, all together: what fits into memory is served, what does not is asked to come back, and nothing is lost. */
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { errorOf, type Harness, MODEL, startHarness, until } from './harness.js';
import type { ScriptedJob } from './scripted-provider.js';

let harness: Harness;
afterEach(() => harness.close());

const LIMITS = { maxRequestBytes: 4096, maxHeldBytes: 10_000 };
const bodyOf = (bytes: number): string => {
  const body = { model: MODEL, messages: [{ role: 'user', content: '' }] };
  return JSON.stringify({ ...body, messages: [{ role: 'user', content: 'x'.repeat(bytes - JSON.stringify(body).length) }] });
};

async function heldBytes(): Promise<number> {
  const text = await (await harness.get('/metrics', harness.adminKey)).text();
  return Number(/^inference_request_bytes_held (\d+)$/m.exec(text)?.[1]);
}

describe('bodies of requests', () => {
  it('are counted until their requests are answered; beyond the bound a request is asked to come back, in the shape of its endpoint', async () => {
    const running: ScriptedJob[] = [];
    harness = await startHarness({ config: LIMITS });
    await harness.provider({ slots: 8, onJob: (job) => void running.push(job) });
    const before = await harness.money();
    const first = [1, 2].map(() => harness.post('/v1/chat/completions', bodyOf(4000)));
    await until(() => running.length === 2);
    expect(await heldBytes()).toBe(8000);
    const refused = await harness.post('/v1/chat/completions', bodyOf(4000));
    expect([refused.status, refused.headers.get('retry-after'), (await errorOf(refused)).code]).toEqual([503, '2', 'overloaded']);
    const asMessages = await harness.post('/v1/messages', bodyOf(4000));
    expect([asMessages.status, asMessages.headers.get('retry-after')]).toEqual([529, '2']);
    expect(await asMessages.json()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
    // A small one still fits, and those that were refused left nothing behind.
    const small = harness.post('/v1/chat/completions', bodyOf(1000));
    await until(() => running.length === 3);
    expect(await heldBytes()).toBe(9000);
    for (const job of running) job.answerHonestly();
    for (const response of await Promise.all([...first, small]))
      expect([response.status, (await response.text()).length > 0]).toEqual([200, true]);
    await until(async () => (await heldBytes()) === 0);
    expect((await harness.money()).reserved).toBe(before.reserved);
  });

  it('that are too large are read to their end, so that whoever sends them gets to read why, and held by nobody', async () => {
    harness = await startHarness({ config: LIMITS });
    for (const length of [{ 'content-length': '25000' }, { 'transfer-encoding': 'chunked' }]) {
      const headers = { 'x-api-key': harness.apiKey, ...length };
      const sent = httpRequest(new URL('/v1/messages', harness.url), { method: 'POST', headers });
      const order: unknown[] = [];
      const answered = once(sent, 'response').then(([{ statusCode }]) => order.push(statusCode));
      sent.write('x'.repeat(5000));
      await until(async () => (await heldBytes()) === 0);
      order.push('sent');
      sent.end('x'.repeat(20_000));
      await answered;
      expect(order).toEqual(['sent', 413]);
      sent.destroy();
    }
    // Nobody reads on for ever.
    const endless = await harness.post('/v1/messages', 'x'.repeat(40_000)).then(
      ({ status }) => status,
      () => 'cut off',
    );
    expect([413, 'cut off']).toContain(endless);
    expect(await heldBytes()).toBe(0);
  });

  it('that are compressed are refused by that name, in the shape of their endpoint', async () => {
    harness = await startHarness({ config: LIMITS });
    const compressed = (path: string): Promise<Response> => {
      const headers = { authorization: `Bearer ${harness.apiKey}`, 'content-encoding': 'gzip' };
      return fetch(`${harness.url}${path}`, { method: 'POST', headers, body: gzipSync(bodyOf(1000)) });
    };
    const chat = await compressed('/v1/chat/completions');
    expect([chat.status, chat.headers.get('accept-encoding'), (await errorOf(chat)).code]).toEqual([
      415,
      'identity',
      'unsupported_media_type',
    ]);
    const message = await compressed('/v1/messages');
    expect(message.status).toBe(400);
    expect(await message.json()).toMatchObject({
      error: { type: 'invalid_request_error', message: expect.stringContaining('Content-Encoding') },
    });
    await until(async () => (await heldBytes()) === 0);
  });

  it('that break off are not held', async () => {
    harness = await startHarness({ config: LIMITS });
    const url = new URL('/v1/chat/completions', harness.url);
    const headers = { authorization: `Bearer ${harness.apiKey}`, 'content-length': '4000' };
    const broken = httpRequest(url, { method: 'POST', headers });
    broken.on('error', () => {});
    broken.write('x'.repeat(3000));
    await until(async () => (await heldBytes()) === 3000);
    broken.destroy();
    await until(async () => (await heldBytes()) === 0);
  });

  it('without a stated length are held to the same bounds', async () => {
    harness = await startHarness({ config: { ...LIMITS, maxHeldBytes: 4096 } });
    const send = (bytes: number): Promise<number> =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${harness.apiKey}`, 'transfer-encoding': 'chunked' };
        const sent = httpRequest(new URL('/v1/chat/completions', harness.url), { method: 'POST', headers }, (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        });
        sent.on('error', reject);
        sent.end(bodyOf(bytes));
      });
    const slow = httpRequest(new URL('/v1/chat/completions', harness.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${harness.apiKey}`, 'transfer-encoding': 'chunked' },
    });
    slow.on('error', () => {});
    slow.write('x'.repeat(2000));
    await until(async () => (await heldBytes()) === 2000);
    expect(await send(3000)).toBe(503);
    // Nobody serves the model, but it was read.
    expect(await send(1000)).toBe(404);
    slow.destroy();
    await until(async () => (await heldBytes()) === 0);
    expect(await send(3000)).toBe(404);
  });
});
