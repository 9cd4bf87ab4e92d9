/** A client that disconnects during a stream pays only for the delivered and signed part. */
import http from 'node:http';
import { fromBase64Url, type Receipt } from '@inference/protocol';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { costOf } from '../../../src/billing/prices/price.js';
import { errorOf, type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ProviderOptions, ScriptedJob, ScriptedProvider } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';

const shared = new SharedHarness();
afterAll(() => shared.close());

let harness: Harness;
afterEach(() => harness.close());

const WORDS = Array.from({ length: 20 }, (_, index) => ` word${index}`);

const price = (promptTokens: number, completionTokens: number): number =>
  costOf(harness.app.prices.current(MODEL), { promptTokens, completionTokens });

/** A stream that the test reads and closes. */
async function openStream(): Promise<http.IncomingMessage> {
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    const request = http.request(
      `${harness.url}/v1/chat/completions`,
      { method: 'POST', headers: { 'x-api-key': harness.apiKey } },
      resolve,
    );
    request.on('error', reject);
    request.end(JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: 'hi' }] }));
  });
  response.on('error', () => {});
  return response;
}

async function readUntil(response: http.IncomingMessage, text: string): Promise<void> {
  let read = '';
  response.on('data', (chunk: Buffer) => {
    read += chunk.toString();
  });
  await until(() => read.includes(text));
}

/** The provider's only job. */
function jobOf(provider: ScriptedProvider): ScriptedJob {
  return [...provider.jobs.values()][0] as ScriptedJob;
}

/** Reads the first words of a stream, disconnects, and waits for the end of the job. */
async function leaveAfterWords(
  options: ProviderOptions,
): Promise<{ provider: ScriptedProvider; line: Record<string, unknown>; paid: number }> {
  const provider = await harness.provider({ onJob: (job) => job.beginStream(WORDS), ...options });
  const before = await harness.money();
  const response = await openStream();
  await readUntil(response, WORDS.at(-1) as string);
  response.destroy();
  await until(() => harness.jobLines().length === 1);
  const money = await harness.money();
  expect(money.reserved).toBe(0);
  return { provider, line: harness.jobLines()[0] as Record<string, unknown>, paid: before.balance - money.balance };
}

async function runningJobs(): Promise<number> {
  const admin = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { providers: { running_jobs: number }[] };
  return admin.providers.reduce((sum, provider) => sum + provider.running_jobs, 0);
}

async function waitingRequests(): Promise<number> {
  const state = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { waiting_requests: number };
  return state.waiting_requests;
}

describe('a client that disconnects during a stream', () => {
  it('pays for the delivered part, with a receipt that says so, and the provider earns it', async () => {
    harness = await shared.take();
    const { provider, line, paid } = await leaveAfterWords({});
    expect(jobOf(provider).cancelled.aborted).toBe(true);
    expect(paid).toBe(price(7, WORDS.length));
    expect(line).toMatchObject({ status: 'client_gone', cost_micro_usd: paid, prompt_tokens: 7, completion_tokens: WORDS.length });
    const kept = await harness.get(`/v1/receipts/${jobOf(provider).context.job_id}`);
    expect(kept.status).toBe(200);
    const { receipt } = (await kept.json()) as { receipt: string };
    expect(JSON.parse(Buffer.from(fromBase64Url(receipt)).toString()) as Receipt).toMatchObject({ finish_reason: 'cancelled' });
    expect((await harness.money(`provider:${provider.providerId}`)).balance).toBeGreaterThan(0);
    expect(await runningJobs()).toBe(0);
  });

  it('pays the whole answer when the provider had already written its end', async () => {
    harness = await shared.take();
    const { paid, line } = await leaveAfterWords({
      onJob: (job) => {
        job.accept();
        for (const part of job.render(WORDS)) job.push(part);
        job.push(new Uint8Array(), true);
      },
      onCancel: (job) => job.complete(),
    });
    expect(line).toMatchObject({ status: 'client_gone' });
    expect(paid).toBe(price(7, WORDS.length));
  });

  it('does not pay for content after its disconnect', async () => {
    harness = await shared.take();
    const { paid } = await leaveAfterWords({
      onCancel: (job) => {
        const late = job.render([...WORDS, ...WORDS]).slice(WORDS.length + 1, -1);
        for (const part of late) job.push(part);
        job.endWhereItStands();
      },
    });
    expect(paid).toBeGreaterThanOrEqual(price(7, WORDS.length));
    expect(paid).toBeLessThanOrEqual(price(7, WORDS.length + 1));
  });

  it('pays nothing when the provider stays silent; the slot stays used while the provider may still be working', async () => {
    harness = await startHarness({ jobTimings: { closingMs: 150 }, providerTimings: { cancelConfirmMs: 600_000 } });
    const { paid, line, provider } = await leaveAfterWords({ onCancel: () => {} });
    expect(paid).toBe(0);
    expect(line).toMatchObject({ status: 'client_gone', cost_micro_usd: 0 });
    expect(await runningJobs()).toBe(1);
    // A completion that arrives after the wait only frees the slot.
    jobOf(provider).endWhereItStands();
    await until(async () => (await runningJobs()) === 0);
    expect(await harness.money()).toEqual({ balance: 100_000_000, reserved: 0 });
    expect((await harness.get(`/v1/receipts/${jobOf(provider).context.job_id}`)).status).toBe(404);
  });

  it('frees the slot of a provider that never confirms', async () => {
    harness = await startHarness({ jobTimings: { closingMs: 50 }, providerTimings: { cancelConfirmMs: 1500 } });
    const used: (number | undefined)[] = [];
    const onCancel: ProviderOptions['onCancel'] = ({ provider: { providerId } }) =>
      void used.push(harness.app.providers.snapshot(providerId)?.usedSlots);
    await leaveAfterWords({ onCancel });
    expect(used).toEqual([1]);
    await until(async () => (await runningJobs()) === 0);
  });

  it('pays nothing when the provider has nothing to sign, and the provider is not at fault', async () => {
    harness = await shared.take();
    const { paid, provider } = await leaveAfterWords({ onCancel: (job) => job.fail({ code: 'cancelled' }) });
    expect(paid).toBe(0);
    const response = harness.chat({ stream: true });
    await until(() => provider.jobs.size === 2);
    const [, second] = [...provider.jobs.values()];
    second?.push(new Uint8Array(), true);
    second?.complete();
    expect(await (await response).text()).toContain('[DONE]');
  });

  it('pays nothing when the provider disconnects meanwhile', async () => {
    harness = await shared.take();
    const { paid } = await leaveAfterWords({ onCancel: (job) => job.provider.close() });
    expect(paid).toBe(0);
  });

  it('pays nothing for an unverified part, and the provider is quarantined', async () => {
    harness = await shared.take();
    const { paid } = await leaveAfterWords({
      onCancel: (job) => {
        job.push(new Uint8Array(), true);
        job.complete({ receipt: (receipt) => ({ ...receipt, response_sha256: '0'.repeat(64) }) });
      },
    });
    expect(paid).toBe(0);
    expect(harness.log.some((line) => line.includes('quarantined'))).toBe(true);
  });

  it('pays nothing before the first content', async () => {
    harness = await startHarness({ jobTimings: { commitMs: 30 } });
    const provider = await harness.provider({ onJob: (job) => job.accept() });
    const response = await openStream();
    response.destroy();
    await until(() => harness.jobLines().length === 1 && jobOf(provider)?.cancelled.aborted === true);
    expect(harness.jobLines()[0]).toMatchObject({ status: 'client_gone', cost_micro_usd: 0 });
    expect(await harness.money()).toEqual({ balance: 100_000_000, reserved: 0 });
  });

  it('without reading pays at most for the bytes that its connection took, and does not occupy its provider', async () => {
    harness = await startHarness({ jobTimings: { closingMs: 2000 } });
    const event = Buffer.from(`data: {"text":"${'.'.repeat(8000)}"}\n\n`);
    const provider = await harness.provider({
      onJob: async (job) => {
        job.accept();
        while (!job.cancelled.aborted) {
          await job.pushWithinCredit(event);
          job.tokens++;
        }
      },
      // An honest provider has text that it could not send for lack of credit. The coordinator must accept it now.
      onCancel: (job) => {
        for (let held = 0; held < 10; held++) job.push(event);
        job.tokens += 10;
        job.endWhereItStands();
      },
    });
    const response = await openStream();
    response.pause();
    // Waits until the credit is used up and no further credit arrives.
    let [before, same] = [-1, 0];
    await until(async () => {
      const { credit = Number.POSITIVE_INFINITY, tokens = 0 } = jobOf(provider) ?? {};
      same = credit < event.length && tokens === before ? same + 1 : 0;
      before = tokens;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return same === 5;
    });
    response.destroy();
    await until(() => harness.jobLines().length === 1);
    const [line] = harness.jobLines();
    const { tokens } = jobOf(provider);
    expect(line).toMatchObject({ status: 'client_gone', prompt_tokens: 7 });
    expect(line?.completion_tokens).toBeGreaterThan(0);
    expect(line?.completion_tokens).toBeLessThan(tokens - 10);
    const money = await harness.money();
    expect(money).toEqual({ balance: 100_000_000 - Number(line?.cost_micro_usd), reserved: 0 });
  });
});

describe('a client that disconnects before a plain answer', () => {
  it('was delivered pays nothing, and the provider just stops', async () => {
    harness = await shared.take();
    const provider = await harness.provider({ onJob: (job) => job.accept() });
    const leaving = new AbortController();
    const asked = harness.chat({}, { signal: leaving.signal }).catch(() => null);
    await until(() => provider.jobs.size === 1);
    leaving.abort();
    await asked;
    await until(() => harness.jobLines().length === 1 && jobOf(provider).cancelled.aborted);
    expect(await harness.money()).toEqual({ balance: 100_000_000, reserved: 0 });
    expect(harness.jobLines()[0]).toMatchObject({ status: 'client_gone', cost_micro_usd: 0 });
  });

  it('was placed pays nothing', async () => {
    harness = await shared.take();
    const provider = await harness.provider({ slots: 1, onJob: (job) => job.accept() });
    const [first, second] = [new AbortController(), new AbortController()];
    const asked = [first, second].map(({ signal }) => harness.chat({}, { signal }).catch(() => null));
    await until(() => provider.jobs.size === 1);
    await until(async () => (await waitingRequests()) === 1);
    first.abort();
    second.abort();
    await Promise.all(asked);
    await until(() => harness.jobLines().length === 2);
    expect(await harness.money()).toEqual({ balance: 100_000_000, reserved: 0 });
  });
});

it('a provider that ends an uncancelled answer as cancelled is quarantined', async () => {
  harness = await shared.take();
  await harness.provider({
    onJob: (job) => job.answerHonestly(['short'], { receipt: (receipt) => ({ ...receipt, finish_reason: 'cancelled' }) }),
  });
  const response = await harness.chat();
  expect([response.status, (await errorOf(response)).code]).toEqual([502, 'response_verification_failed']);
  expect(harness.jobLines()[0]).toMatchObject({ problem: 'receipt.finish_reason' });
});
