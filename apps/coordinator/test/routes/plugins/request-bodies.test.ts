/** Memory budget of request bodies: bodies beyond the budget get 503 with `Retry-After`, and all memory is released. */
import { Agent, request as httpRequest } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

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

describe('request bodies', () => {
  it('count until their requests are answered; beyond the budget requests get 503 in the format of their endpoint', async () => {
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
    // A small body still fits, because refused bodies hold no memory.
    const small = harness.post('/v1/chat/completions', bodyOf(1000));
    await until(() => running.length === 3);
    expect(await heldBytes()).toBe(9000);
    for (const job of running) job.answerHonestly();
    for (const response of await Promise.all([...first, small]))
      expect([response.status, (await response.text()).length > 0]).toEqual([200, true]);
    await until(async () => (await heldBytes()) === 0);
    expect((await harness.money()).reserved).toBe(before.reserved);
  });

  it('that break off hold no memory', async () => {
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

  it('without Content-Length have the same limits', async () => {
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
    // 404, because no provider serves the model: the body was accepted.
    expect(await send(1000)).toBe(404);
    slow.destroy();
    await until(async () => (await heldBytes()) === 0);
    expect(await send(3000)).toBe(404);
  });

  it('that are too large get a response on a connection that continues, even if the client sends everything first', async () => {
    harness = await startHarness();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const send = (path: string, body: Buffer | null, length: Record<string, string>): Promise<number> =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${harness.apiKey}`, ...length };
        const sent = httpRequest(new URL(path, harness.url), { agent, method: body === null ? 'GET' : 'POST', headers });
        const answered = new Promise<number>((known) => sent.on('response', (response) => known(response.resume().statusCode ?? 0)));
        sent.on('error', reject);
        sent.end(body, () => void answered.then(resolve));
      });
    const body = Buffer.alloc(40_000_000, 'x');
    const ports = new Set<number | undefined>();
    agent.on('free', (socket) => ports.add(socket.localPort));
    expect(await send('/v1/chat/completions', body, { 'content-length': String(body.length) })).toBe(413);
    expect(await send('/v1/chat/completions', body, { 'transfer-encoding': 'chunked' })).toBe(413);
    expect(await send('/v1/models', null, {})).toBe(200);
    await until(() => agent.sockets[0] === undefined && ports.size > 0);
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  it('that stop arriving get 408 and hold no memory', async () => {
    harness = await startHarness({ bodyWindowMs: 100 });
    const headers = { authorization: `Bearer ${harness.apiKey}`, 'content-length': '100000' };
    const stalled = httpRequest(new URL('/v1/chat/completions', harness.url), { method: 'POST', headers });
    stalled.on('error', () => {});
    const answered = new Promise<[number | undefined, string | undefined]>((resolve) =>
      stalled.on('response', (response) => resolve([response.statusCode, response.resume().headers.connection])),
    );
    stalled.write('x'.repeat(3000));
    expect(await answered).toEqual([408, 'close']);
    await until(async () => (await heldBytes()) === 0);
  });

  it('that never end are cut off', async () => {
    harness = await startHarness({ config: LIMITS });
    const headers = { authorization: `Bearer ${harness.apiKey}`, 'transfer-encoding': 'chunked' };
    const endless = httpRequest(new URL('/v1/chat/completions', harness.url), { method: 'POST', headers });
    let cut = false;
    endless.on('error', () => {});
    endless.on('close', () => {
      cut = true;
    });
    const piece = Buffer.alloc(65_536, 'x');
    await until(() => {
      endless.write(piece);
      return cut;
    });
  });
});
