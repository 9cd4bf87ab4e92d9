/** Waiting for a busy provider, as clients see it: fair between accounts, with a useful Retry-After. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Customer, errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

let harness: Harness;
afterEach(async () => {
  await harness.close();
  vi.restoreAllMocks();
});

const waiting = async (): Promise<number> => {
  const state = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { waiting_requests: number };
  return state.waiting_requests;
};

const ask = (customer: Customer, content: string, signal?: AbortSignal): Promise<Response> =>
  harness.chat(
    { messages: [{ role: 'user', content }] },
    { headers: { authorization: `Bearer ${customer.apiKey}` }, ...(signal === undefined ? {} : { signal }) },
  );

/** Connects a provider with a single slot, whose jobs the test ends. */
async function oneSlot(): Promise<ScriptedJob[]> {
  const jobs: ScriptedJob[] = [];
  await harness.provider({
    slots: 1,
    onJob: (job) => {
      job.accept();
      jobs.push(job);
    },
  });
  return jobs;
}

/** Ends jobs in order and returns their accounts. */
async function finish(jobs: ScriptedJob[], count: number): Promise<string[]> {
  const contents: string[] = [];
  for (let index = 0; index < count; index++) {
    await until(() => jobs.length > index);
    const job = jobs[index] as ScriptedJob;
    contents.push(job.lastContent);
    job.answerHonestly([job.lastContent]);
  }
  return contents;
}

describe('a burst of one account', () => {
  it('delays other accounts by at most one turn', async () => {
    harness = await startHarness();
    const jobs = await oneSlot();
    const other = await harness.customer(1_000_000);
    const burst = [ask(harness.developer, 'burst')];
    await until(() => jobs.length === 1);
    for (let count = 1; count <= 6; count++) burst.push(ask(harness.developer, 'burst'));
    await until(async () => (await waiting()) === 6);
    const single = ask(other, 'single');
    await until(async () => (await waiting()) === 7);
    const order = await finish(jobs, 8);
    expect(order.indexOf('single')).toBeLessThanOrEqual(2);
    expect((await Promise.all([...burst, single])).map(({ status }) => status)).toEqual(Array(8).fill(200));
  });

  it('that fills the queue is displaced by accounts with fewer requests', async () => {
    harness = await startHarness({ maxWaitingPerModel: 3 });
    const jobs = await oneSlot();
    const other = await harness.customer(1_000_000);
    const running = ask(harness.developer, 'burst');
    await until(() => jobs.length === 1);
    const burst = [1, 2, 3].map(() => ask(harness.developer, 'burst'));
    await until(async () => (await waiting()) === 3);
    const single = ask(other, 'single');
    const ended = await Promise.race(burst);
    expect([ended.status, (await errorOf(ended)).code]).toEqual([429, 'rate_limit_exceeded']);
    expect(await finish(jobs, 4)).toContain('single');
    expect((await Promise.all([running, single])).map(({ status }) => status)).toEqual([200, 200]);
    expect((await Promise.all(burst)).map(({ status }) => status).sort()).toEqual([200, 200, 429]);
  });
});

describe('a hopeless wait', () => {
  it('is refused at once, with the measured time', async () => {
    const measured = performance.now.bind(performance);
    let aheadMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => measured() + aheadMs);
    harness = await startHarness({ jobTimings: { queueMs: 6000 } });
    const jobs = await oneSlot();
    const leaving = new AbortController();
    for (let count = 0; count < 3; count++) {
      const answer = ask(harness.developer, 'first');
      await until(() => jobs.length === count + 1);
      aheadMs += 9000;
      jobs[count]?.answerHonestly();
      expect((await answer).status).toBe(200);
    }
    const running = ask(harness.developer, 'running', leaving.signal).catch(() => null);
    await until(() => jobs.length === 4);
    const queued = ask(harness.developer, 'queued');
    await until(async () => (await waiting()) === 1);
    // Two jobs of 9 seconds each are ahead.
    const [chat, messages] = await Promise.all([
      ask(harness.developer, 'hopeless'),
      harness.post('/v1/messages', { model: MODEL, max_tokens: 5, messages: [{ role: 'user', content: 'hopeless' }] }),
    ]);
    expect([chat.status, (await errorOf(chat)).code, messages.status]).toEqual([503, 'no_provider', 529]);
    const retryAfter = Number(chat.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThanOrEqual(18);
    expect(messages.headers.get('retry-after')).toBe(String(retryAfter));
    expect(harness.jobLines().map(({ reason }) => reason)).toContain('hopeless');
    const late = await queued;
    expect(late.status).toBe(503);
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThanOrEqual(9);
    expect(Number(late.headers.get('retry-after'))).toBeLessThan(retryAfter);
    leaving.abort();
    await running;
  });
});
