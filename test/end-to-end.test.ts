/** End-to-end mode through a whole network: official SDKs on a verified fetch, and curl through the local proxy. */
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import { createVerifiedFetch, memoryStore, type PolicyInput, type Store, verdictOf } from '@inference/client';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestSigner } from '../packages/protocol/test/log/log-fixture.js';
import type { DemoNetwork } from './support/demo-network.js';
import { failuresOfSharedNetwork, sharedNetwork } from './support/shared-network.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const PROGRAM = fileURLToPath(new URL('../packages/verifier/bin/inference-verify.js', import.meta.url));
const SIMULATED = { allowSimulated: true };
const messages = [{ role: 'user' as const, content: 'What is the capital of France?' }];

let network: DemoNetwork;
beforeAll(async () => {
  network = await sharedNetwork();
});
afterAll(() => {
  expect(failuresOfSharedNetwork()).toEqual([]);
});

describe('SDKs on a verified fetch', () => {
  let fetch: ReturnType<typeof createVerifiedFetch>;
  let openai: OpenAI;
  beforeAll(() => {
    fetch = createVerifiedFetch({ baseURL: network.baseUrl, policy: SIMULATED });
    openai = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey, fetch, maxRetries: 0 });
  });

  it('get a verified chat completion', async () => {
    const { data, response } = await openai.chat.completions
      .create({ model: network.model, messages, temperature: 0, max_tokens: 32 })
      .withResponse();
    expect(data.choices[0]?.message.content).toContain('Paris');
    const [provider] = await fetch.candidates(network.model);
    expect(verdictOf(response)).toMatchObject({
      state: 'verified',
      provider: { providerId: provider?.providerId, evidence: 'simulated' },
      receipt: { model: network.model, endpoint: '/v1/chat/completions', usage: { completion_tokens: data.usage?.completion_tokens } },
    });
  });

  it('get a verified chat stream', async () => {
    const { data, response } = await openai.chat.completions
      .create({ model: network.model, messages, temperature: 0, max_tokens: 32, stream: true, stream_options: { include_usage: true } })
      .withResponse();
    expect(verdictOf(response)?.state).toBe('pending');
    let text = '';
    for await (const { choices } of data) text += choices[0]?.delta.content ?? '';
    expect(text).toContain('Paris');
    expect(verdictOf(response)).toMatchObject({ state: 'verified', receipt: { finish_reason: 'stop' } });
  });

  it('get a verified response, plain and streamed', async () => {
    const request = { model: network.model, input: 'What is the capital of Japan?', temperature: 0, max_output_tokens: 32 };
    const plain = await openai.responses.create(request).withResponse();
    expect(plain.data.output_text).toContain('Tokyo');
    expect(verdictOf(plain.response)).toMatchObject({ state: 'verified', receipt: { endpoint: '/v1/responses' } });
    const streamed = await openai.responses.create({ ...request, stream: true }).withResponse();
    const types: string[] = [];
    for await (const { type } of streamed.data) types.push(type);
    expect(types.at(-1)).toBe('response.completed');
    expect(verdictOf(streamed.response)?.state).toBe('verified');
  });

  it('get a verified message stream', async () => {
    const anthropic = new Anthropic({ baseURL: network.baseUrl, apiKey: network.apiKey, fetch, maxRetries: 0 });
    const stream = anthropic.messages.stream({ model: network.model, max_tokens: 32, temperature: 0, messages });
    const { response } = await stream.withResponse();
    const { content } = await stream.finalMessage();
    expect(content).toMatchObject([{ type: 'text', text: expect.stringContaining('Paris') as string }]);
    expect(verdictOf(response)).toMatchObject({ state: 'verified', receipt: { endpoint: '/v1/messages' } });
  });

  it('get the verified refusal of a bad request', async () => {
    let answer: Response | undefined;
    const observed: typeof globalThis.fetch = async (input, init) => {
      answer = await fetch(input as string, init);
      return answer;
    };
    const client = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey, fetch: observed, maxRetries: 0 });
    const prompt = 'x '.repeat(60_000);
    await expect(
      client.chat.completions.create({ model: network.model, messages: [{ role: 'user', content: prompt }], max_tokens: 8 }),
    ).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' });
    expect(verdictOf(answer as Response)).toMatchObject({ state: 'verified', receipt: { finish_reason: 'refused' } });
  });
});

describe('a client that requires the transparency log', () => {
  const client = async (store: Store, changes: PolicyInput = {}) => {
    const logKey = (await (await fetch(`${network.baseUrl}/e2e/log/key`)).text()).trim();
    const policy = { ...SIMULATED, log: 'required' as const, logKey, ...changes };
    return createVerifiedFetch({ baseURL: network.baseUrl, policy, store });
  };

  it('gets verified responses, also with the stored checkpoint', async () => {
    const store = memoryStore();
    for (let run = 0; run < 2; run++) {
      const openai = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey, fetch: await client(store), maxRetries: 0 });
      const { response } = await openai.chat.completions.create({ model: network.model, messages, max_tokens: 32 }).withResponse();
      expect(verdictOf(response)?.state).toBe('verified');
    }
  });

  it('refuses a log of another key, and one that showed another history before', async () => {
    const store = memoryStore();
    const { verifierKey } = new TestSigner('log.example', 9, 'ed25519');
    await expect((await client(store, { logKey: verifierKey })).ready()).rejects.toMatchObject({ code: 'split_view' });
    await (await client(store)).ready();
    const state = JSON.parse((await store.load()) as string) as { log: string };
    const { stored, ...rest } = JSON.parse(state.log) as { stored: object };
    const log = JSON.stringify({ ...rest, stored: { ...stored, root: '00'.repeat(32) } });
    await store.save(JSON.stringify({ ...state, log }));
    await expect((await client(store)).ready()).rejects.toMatchObject({ code: 'split_view' });
  });
});

it('inference-verify proxy answers curl, and tells the verdicts', async () => {
  const scratch = temporaryDirectory('end-to-end');
  const state = join(scratch, 'state.json');
  const args = ['proxy', '--base-url', network.baseUrl, '--listen', '127.0.0.1:0', '--allow-simulated', '--state', state];
  const child = spawn(process.execPath, [PROGRAM, ...args]);
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes.toString()));
  try {
    await expect.poll(() => output).toContain('listening on http://127.0.0.1:');
    const proxy = /listening on (\S+) for/.exec(output)?.[1] as string;
    for (const stream of [false, true]) {
      const body = JSON.stringify({ model: network.model, temperature: 0, max_tokens: 32, messages, stream });
      const headers = ['-H', `Authorization: Bearer ${network.apiKey}`, '-H', 'Content-Type: application/json'];
      const { stdout } = await promisify(execFile)('curl', ['-sSf', `${proxy}/v1/chat/completions`, ...headers, '-d', body]);
      expect(stdout).toContain(stream ? '"finish_reason":"stop"' : 'The capital of France is Paris.');
      expect(stdout.endsWith('data: [DONE]\n\n')).toBe(stream);
    }
    const verdicts = async () => ((await (await fetch(`${proxy}/.inference/verdict`)).json()) as { verdicts: unknown[] }).verdicts;
    const verified = { state: 'verified', path: '/v1/chat/completions', evidence: 'simulated' };
    await expect.poll(verdicts).toMatchObject([verified, verified]);
    expect(output).not.toContain('capital of France');
  } finally {
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  }
});
