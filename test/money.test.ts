/** Money over a whole network with the official SDKs: public endpoints, and balances after parts of the network are killed. */
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, createAccount, newKeyText } from '../apps/coordinator/src/database/accounts/api-key-repository.js';
import { openDatabase } from '../apps/coordinator/src/database/connection/open-database.js';
import { checkLedger } from '../apps/coordinator/src/database/ledger/check-ledger.js';
import type { Database } from '../apps/coordinator/src/database/tables.js';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { descendantsOf, waitUntilGone } from './support/processes.js';

interface UsageEntry {
  readonly request_id: string;
  readonly model: string;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_micro_usd: number;
}

let network: DemoNetwork;
let dispose: () => Promise<void>;
/** The coordinator's own database, opened a second time. */
let database: Database;

beforeAll(async () => {
  ({ network, dispose } = await startDemoNetwork({ coordinatorEnv: { LOG_LEVEL: 'debug' } }));
  database = await openDatabase({ file: join(network.dataDir, 'coordinator', 'coordinator.db') });
});
afterAll(async () => {
  await database?.destroy();
  await dispose?.();
});

async function read<Body>(path: string): Promise<Body> {
  const response = await fetch(network.baseUrl + path, { headers: { authorization: `Bearer ${network.apiKey}` } });
  expect(response.status).toBe(200);
  return (await response.json()) as Body;
}

const balance = async (): Promise<number> => (await read<{ balance_micro_usd: number }>('/v1/payments/balance')).balance_micro_usd;
const usage = async (): Promise<UsageEntry[]> => (await read<{ usage: UsageEntry[] }>('/v1/payments/usage')).usage;

/** Cost of some work, by the balance and by the new usage entries, newest first. */
async function costing(work: () => Promise<unknown>, entries: number): Promise<{ paid: number; added: UsageEntry[] }> {
  const [balanceBefore, usageBefore] = [await balance(), new Set((await usage()).map((entry) => entry.request_id))];
  await work();
  let added: UsageEntry[] = [];
  await expect
    .poll(
      async () => {
        added = (await usage()).filter((entry) => !usageBefore.has(entry.request_id));
        return added.length;
      },
      { interval: 50 },
    )
    .toBe(entries);
  return { paid: balanceBefore - (await balance()), added };
}

async function held(): Promise<number> {
  const rows = await database.selectFrom('jobs').select('job_id').where('state', '=', 'reserved').execute();
  return rows.length;
}

const sum = (entries: readonly UsageEntry[]): number => entries.reduce((total, entry) => total + entry.cost_micro_usd, 0);
const question = [{ role: 'user' as const, content: 'What is the capital of France?' }];
/** Generates up to its limit, for several seconds. */
const endless = { prompt: '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20', temperature: 0, max_tokens: 2000 };

describe('what is paid', () => {
  it('is what the answers say they used, and the usage entries sum up to it', async () => {
    const anthropic = new Anthropic({ baseURL: network.baseUrl, apiKey: network.apiKey, maxRetries: 0 });
    const { model, openai } = network;
    let tokens = 0;
    const { paid, added } = await costing(async () => {
      const plain = await openai.chat.completions.create({ model, messages: question, temperature: 0 });
      tokens += plain.usage?.total_tokens ?? 0;
      const stream = await openai.chat.completions.create({
        model,
        messages: question,
        stream: true,
        stream_options: { include_usage: true },
      });
      for await (const chunk of stream) tokens += chunk.usage?.total_tokens ?? 0;
      const message = await anthropic.messages.create({ model, max_tokens: 50, messages: question });
      // This format reports cached tokens separately.
      const { input_tokens: fresh, cache_read_input_tokens: known, output_tokens: written } = message.usage;
      tokens += fresh + (known ?? 0) + written;
      const response = await openai.responses.create({ model, input: 'Hello!' });
      tokens += response.usage?.total_tokens ?? 0;
      // Free.
      await anthropic.messages.countTokens({ model, messages: question });
      // Refused, so free.
      await openai.chat.completions.create({ model: 'no-such-model', messages: question }).catch(() => {});
    }, 4);
    expect(paid).toBeGreaterThan(0);
    expect(sum(added)).toBe(paid);
    expect(added.reduce((total, entry) => total + entry.prompt_tokens + entry.completion_tokens, 0)).toBe(tokens);
    expect(added.every((entry) => entry.model === model)).toBe(true);
    await expect.poll(held).toBe(0);
  });

  it('for a stream that its client leaves is the part that was delivered', async () => {
    const { model, openai } = network;
    let jobId = '';
    let words = 0;
    const { paid, added } = await costing(async () => {
      const { data: stream, response } = await openai.completions.create({ ...endless, model, stream: true }).withResponse();
      jobId = response.headers.get('x-inference-job-id') ?? '';
      for await (const chunk of stream) {
        if (chunk.choices[0]?.text) words++;
        if (words === 20) break;
      }
    }, 1);
    const [entry] = added;
    expect(entry).toMatchObject({ request_id: jobId, cost_micro_usd: paid });
    expect(entry?.completion_tokens).toBeGreaterThanOrEqual(20);
    expect(entry?.completion_tokens).toBeLessThan(1000);
    const { claims } = await receiptOf(jobId);
    expect(claims).toMatchObject({ finish_reason: 'cancelled', job_id: jobId });
    expect(claims.usage.completion_tokens).toBeGreaterThanOrEqual(entry?.completion_tokens ?? 0);
  });

  it('for a plain answer that its client does not wait for is nothing', async () => {
    const { model } = network;
    const before = [await balance(), (await usage()).length];
    await network.post('/v1/completions', { ...endless, model }, { signal: AbortSignal.timeout(300) }).catch(() => {});
    await expect.poll(held).toBe(0);
    expect([await balance(), (await usage()).length]).toEqual(before);
    expect((await checkLedger(database)).problems).toEqual([]);
  });
});

describe('an account without money', () => {
  let apiKey: string;
  beforeAll(async () => {
    apiKey = newKeyText();
    const accountId = await createAccount(database, 'poor', Date.now());
    await addKey(database, { accountId, kind: 'api', text: apiKey, now: Date.now() });
  });

  /** Counts an SDK's requests. */
  function counting(): { fetch: typeof fetch; sent: () => number } {
    let sent = 0;
    return {
      fetch: (...request) => {
        sent++;
        return fetch(...request);
      },
      sent: () => sent,
    };
  }

  it('is told so by the OpenAI SDK, which does not try again', async () => {
    const { fetch, sent } = counting();
    const client = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey, maxRetries: 3, fetch });
    for (const stream of [false, true]) {
      const error = await client.chat.completions
        .create({ model: network.model, messages: question, stream })
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(OpenAI.APIError);
      expect(error).toMatchObject({ status: 402, code: 'insufficient_quota', type: 'insufficient_quota' });
      expect((error as Error).message).toMatch(/max_tokens.*your balance is \$0\.000000 \(0 micro-USD\)/);
    }
    expect(sent()).toBe(2);
  });

  it('is told so by the Anthropic SDK, which does not try again', async () => {
    const { fetch, sent } = counting();
    const client = new Anthropic({ baseURL: network.baseUrl, apiKey, maxRetries: 3, fetch });
    const error = await client.messages
      .create({ model: network.model, max_tokens: 32_000, messages: question, stream: true })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Anthropic.APIError);
    expect(error).toMatchObject({ status: 402, error: { type: 'error', error: { type: 'billing_error' } } });
    expect(sent()).toBe(1);
  });
});

describe('nothing stays reserved and nothing is paid when', () => {
  /** Starts an endless stream and reads its first bytes. Resolves to the rest, which ends on a failure. */
  async function begun(): Promise<{ rest: Promise<unknown> }> {
    const response = await network.post('/v1/completions', { ...endless, model: network.model, stream: true });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    expect(await held()).toBe(1);
    const rest = (async () => {
      for (let part = await reader.read(); !part.done; part = await reader.read());
    })();
    return { rest: rest.catch(() => {}) };
  }

  it('the coordinator is killed in the middle of a stream', async () => {
    const before = [await balance(), (await usage()).length];
    const { rest } = await begun();
    process.kill(network.coordinator.current.pid, 'SIGKILL');
    await rest;
    await expect.poll(async () => held(), { timeout: 60_000, interval: 250 }).toBe(0);
    await expect.poll(() => balance().catch(() => null), { timeout: 60_000, interval: 250 }).toBe(before[0]);
    expect((await usage()).length).toBe(before[1]);
    expect((await checkLedger(database)).problems).toEqual([]);
    await expect.poll(async () => (await ask().catch(() => null))?.status, { timeout: 60_000, interval: 250 }).toBe(200);
  });

  it('the provider is killed in the middle of a stream', async () => {
    const before = [await balance(), (await usage()).length];
    const provider = network.providers[0]?.current.pid as number;
    const family = [provider, ...descendantsOf(provider).map((row) => row.pid)];
    const { rest } = await begun();
    process.kill(provider, 'SIGKILL');
    await rest;
    expect(await waitUntilGone(family)).toEqual([]);
    await expect.poll(held).toBe(0);
    expect([await balance(), (await usage()).length]).toEqual(before);
  });
});

function ask(): Promise<Response> {
  return network.post('/v1/chat/completions', { model: network.model, messages: question, temperature: 0, max_tokens: 20 });
}

interface SignedReceipt {
  readonly claims: { readonly usage: { readonly completion_tokens: number } } & Record<string, unknown>;
}

/** The coordinator stores a receipt after the charge, so it can appear later than the usage entry. */
async function receiptOf(jobId: string): Promise<SignedReceipt> {
  const path = `/v1/receipts/${jobId}`;
  const headers = { authorization: `Bearer ${network.apiKey}` };
  await expect.poll(async () => (await fetch(network.baseUrl + path, { headers })).status).toBe(200);
  return read(path);
}
