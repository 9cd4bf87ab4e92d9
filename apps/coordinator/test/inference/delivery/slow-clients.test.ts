import { readFileSync } from 'node:fs';
import http from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { INITIAL_CREDIT_BYTES } from '@inference/protocol';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(() => harness.close());

const REQUEST = { model: MODEL, stream: true, messages: [{ role: 'user', content: 'hi' }] };

/** A stream request whose response the test reads slowly. */
function openStream(on: Harness): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${on.url}/v1/chat/completions`, { method: 'POST', headers: { 'x-api-key': on.apiKey } }, resolve);
    request.on('error', reject);
    request.end(JSON.stringify(REQUEST));
  });
}

async function waiting(on: Harness): Promise<number> {
  return ((await (await on.get('/admin/v1/providers', on.adminKey)).json()) as { waiting_requests: number }).waiting_requests;
}

describe('a slow client', () => {
  it('stops its provider by credit, and loses no byte', async () => {
    harness = await shared.take();
    const events = Array.from({ length: 300 }, (_, index) => Buffer.from(`data: {"text":"${String(index).padStart(40_000, '.')}"}\n\n`));
    const provider = await harness.provider({
      onJob: async (job) => {
        job.accept();
        for (const event of events) await job.pushWithinCredit(event);
        job.push(new Uint8Array(), true);
        job.complete();
      },
    });
    const response = await openStream(harness);
    response.pause();
    const job = (): { sent: number } | undefined => [...provider.jobs.values()][0];
    let before = -1;
    await until(async () => {
      const stable = before === job()?.sent && before > 0;
      before = job()?.sent ?? -1;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return stable;
    });
    // The kernel's socket buffers hold some megabytes. Beyond these, only the credit window is in flight.
    const total = events.length * (events[0]?.length ?? 0);
    expect(job()?.sent).toBeLessThan(total - INITIAL_CREDIT_BYTES);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    expect(text.startsWith(Buffer.concat(events).toString())).toBe(true);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  it('that reads nothing for too long is disconnected, and its job cancelled', async () => {
    harness = await startHarness({ jobTimings: { clientDrainMs: 300 } });
    const provider = await harness.provider({
      onJob: async (job) => {
        job.accept();
        while (!job.cancelled.aborted) await job.pushWithinCredit(Buffer.from(`data: {"text":"${'.'.repeat(60_000)}"}\n\n`));
      },
    });
    const response = await openStream(harness);
    response.pause();
    response.on('error', () => {});
    await until(() => [...provider.jobs.values()][0]?.cancelled.aborted === true);
    await until(() => harness.log.some((line) => line.includes('client_gone')));
  });
});

describe('a client that disconnects', () => {
  for (const stream of [true, false]) {
    it(`cancels its job while the provider works: ${stream ? 'streamed' : 'plain'}`, async () => {
      harness = await shared.take();
      const provider = await harness.provider({ onJob: (job) => job.accept() });
      const leaving = new AbortController();
      const request = harness.chat({ stream }, { signal: leaving.signal }).catch(() => null);
      await until(() => provider.jobs.size === 1);
      leaving.abort();
      await until(() => [...provider.jobs.values()][0]?.cancelled.aborted === true);
      await request;
      await until(async () => {
        const admin = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as {
          providers: { running_jobs: number }[];
        };
        return admin.providers[0]?.running_jobs === 0;
      });
    });
  }

  it('cancels all of its jobs, also of pipelined requests on the same connection', async () => {
    harness = await shared.take();
    const provider = await harness.provider({ slots: 12, onJob: (job) => job.accept() });
    const body = JSON.stringify(REQUEST);
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: ${harness.apiKey}\r\ncontent-length: ${body.length}\r\n\r\n`;
    const client = connect(Number(new URL(harness.url).port), '127.0.0.1');
    client.write((head + body).repeat(12));
    await until(() => provider.jobs.size === 12);
    client.destroy();
    await until(() => [...provider.jobs.values()].every(({ cancelled }) => cancelled.aborted));
    await until(() => harness.jobLines().length === 12);
    const metrics = await (await harness.get('/metrics', harness.adminKey)).text();
    expect(metrics).toContain('\ninference_request_bytes_held 0\n');
    expect(await harness.money()).toMatchObject({ reserved: 0 });
  });

  it('leaves the queue', async () => {
    harness = await shared.take();
    const provider = await harness.provider({ slots: 1, onJob: (job) => job.accept() });
    const [first, second] = [new AbortController(), new AbortController()];
    const running = harness.chat({}, { signal: first.signal }).catch(() => null);
    await until(() => provider.jobs.size === 1);
    const queued = harness.chat({}, { signal: second.signal }).catch(() => null);
    await until(async () => (await waiting(harness)) === 1);
    second.abort();
    await until(async () => (await waiting(harness)) === 0);
    first.abort();
    await Promise.all([running, queued]);
    expect(provider.jobs.size).toBe(1);
  });
});

describe('when all providers are busy', () => {
  it('a provider that reports itself full pauses for a moment, despite free slots', async () => {
    const backoffMs = 300;
    harness = await startHarness({ providerTimings: { backoffMs } });
    const askedAt: number[] = [];
    await harness.provider({
      slots: 4,
      onJob: (job) => {
        askedAt.push(Date.now());
        if (askedAt.length < 3) job.fail({ code: 'busy' });
        else job.answerHonestly(['yes']);
      },
    });
    expect((await harness.chat()).status).toBe(200);
    const [first = 0, second = 0, third = 0] = askedAt;
    // Both clocks have a resolution of a millisecond.
    expect(Math.min(second - first, third - second)).toBeGreaterThanOrEqual(backoffMs - 2);
  });

  it('requests wait their turn, and one that waits too long gets Retry-After', async () => {
    harness = await startHarness({ jobTimings: { queueMs: 4000 }, maxWaitingPerModel: 2 });
    const finish: (() => void)[] = [];
    await harness.provider({ slots: 1, onJob: (job) => void finish.push(() => job.answerHonestly([job.lastContent])) });
    const say = (content: string): Promise<Response> => harness.chat({ messages: [{ role: 'user', content }] });
    const first = say('first');
    await until(() => finish.length === 1);
    const second = say('second');
    await until(async () => (await waiting(harness)) === 1);
    const third = say('third');
    await until(async () => (await waiting(harness)) === 2);
    const tooMany = await say('fourth');
    expect([tooMany.status, (await errorOf(tooMany)).code, tooMany.headers.get('retry-after')]).toEqual([429, 'rate_limit_exceeded', '1']);
    finish[0]?.();
    expect((await first).status).toBe(200);
    await until(() => finish.length === 2);
    const late = await third;
    expect([late.status, (await errorOf(late)).code]).toEqual([503, 'no_provider']);
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    finish[1]?.();
    expect(await (await second).json()).toMatchObject({ choices: [{ message: { content: 'second' } }] });
  });

  it('a named provider is waited for, and no other is used', async () => {
    harness = await startHarness({ jobTimings: { queueMs: 100 } });
    const named = await harness.provider({ serial: 'NAMED', slots: 1, onJob: (job) => job.accept() });
    const other = await harness.provider({ serial: 'OTHER' });
    const leaving = new AbortController();
    const running = harness.chat({ provider_serial: 'NAMED' }, { signal: leaving.signal }).catch(() => null);
    await until(() => named.jobs.size === 1);
    expect((await harness.chat({ provider_serial: 'NAMED' })).status).toBe(503);
    expect((await harness.chat({ provider_serial: 'OTHER' })).headers.get('x-provider-serial')).toBe('OTHER');
    expect(other.jobs.size).toBe(1);
    leaving.abort();
    await running;
  });

  it('load spreads over free providers', async () => {
    harness = await shared.take();
    const release: (() => void)[] = [];
    const onJob = (job: { answerHonestly(): void }): void => void release.push(() => job.answerHonestly());
    const providers = await Promise.all([1, 2, 3].map(() => harness.provider({ slots: 2, onJob })));
    const answers = Array.from({ length: 6 }, () => harness.chat());
    await until(() => release.length === 6);
    expect(providers.map((provider) => provider.jobs.size)).toEqual([2, 2, 2]);
    for (const go of release) go();
    expect((await Promise.all(answers)).map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200, 200]);
  });
});

describe('a silent stream', () => {
  it('commits its headers, is kept alive by comments, and still verifies', async () => {
    harness = await startHarness({ jobTimings: { commitMs: 50, keepAliveMs: 50 } });
    let go: () => void = () => {};
    await harness.provider({
      onJob: (job) => {
        job.accept();
        go = () => {
          for (const part of job.render(['late'])) job.push(part);
          job.push(new Uint8Array(), true);
          job.complete();
        };
      },
    });
    const response = await harness.chat({ stream: true });
    expect(response.status).toBe(200);
    let text = '';
    let isAsked = false;
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (isAsked || (text.match(/^: keep-alive\n\n/gm)?.length ?? 0) < 3) continue;
      isAsked = true;
      go();
    }
    expect(text).toContain('late');
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });
});

it('large bodies are sent in several frames, unchanged', async () => {
  harness = await shared.take();
  const content = 'ä'.repeat(400_000);
  const provider = await harness.provider();
  expect((await harness.chat({ messages: [{ role: 'user', content }] })).status).toBe(200);
  expect([...provider.jobs.values()][0]?.lastContent).toBe(content);
});

it('prompts and answers appear in no log line, metric or table', async () => {
  harness = await startHarness();
  const canary = 'CANARY-7f3a91';
  await harness.provider({ onJob: (job) => job.answerHonestly([canary]) });
  const messages = [{ role: 'user', content: canary }];
  expect(await (await harness.chat({ messages })).text()).toContain(canary);
  expect(await (await harness.chat({ messages, stream: true })).text()).toContain(canary);
  expect((await harness.chat({ messages, model: canary })).status).toBe(404);
  expect((await harness.chat({ messages, temperature: canary })).status).toBe(400);
  const broken = await fetch(`${harness.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-api-key': harness.apiKey },
    body: `{"${canary}": `,
  });
  expect(broken.status).toBe(400);
  await harness.get(`/v1/receipts/${canary}`);
  await new Promise((resolve) => setTimeout(resolve, 700));
  const files = ['coordinator.db', 'coordinator.db-wal'].map((name) =>
    readFileSync(join(harness.dataDir, 'coordinator', name)).toString('latin1'),
  );
  expect(harness.log.some((line) => line.includes('"delivered"'))).toBe(true);
  const metrics = await (await harness.get('/metrics', harness.adminKey)).text();
  expect(metrics).toContain('inference_jobs_total{endpoint="/v1/chat/completions",stream="true",end="delivered"} 1');
  const secrets = [canary, harness.apiKey, harness.developer.accountId];
  for (const secret of secrets) expect(metrics).not.toContain(secret);
  for (const text of [...harness.log, ...files]) {
    expect(text).not.toContain(canary);
    expect(text).not.toContain(harness.apiKey);
  }
});
