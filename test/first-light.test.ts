/**
 * The whole network with the official OpenAI client: coordinator, agent, enclave helper and llama.cpp as separate processes, with
 * the real demo model.
 */
import { createHash } from 'node:crypto';
import type OpenAI from 'openai';
import { APIError } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { filesHolding } from './support/files-holding.js';

let network: DemoNetwork;
let dispose: () => Promise<void>;

beforeAll(async () => {
  ({ network, dispose } = await startDemoNetwork({ providers: 2 }));
});
afterAll(() => dispose?.());

const ask = (content: string): OpenAI.ChatCompletionMessageParam[] => [{ role: 'user', content }];

const serialOf = (response: Response) => response.headers.get('x-provider-serial') ?? '';

describe('the official OpenAI client', () => {
  it('gets an answer with usage and a natural end', async () => {
    const answer = await network.openai.chat.completions.create({
      model: network.model,
      messages: ask('What is the capital of France?'),
      temperature: 0,
    });
    expect(answer.object).toBe('chat.completion');
    expect(answer.model).toBe(network.model);
    expect(answer.choices).toHaveLength(1);
    expect(answer.choices[0]?.message).toMatchObject({ role: 'assistant', content: 'The capital of France is Paris.', refusal: null });
    expect(answer.choices[0]?.finish_reason).toBe('stop');
    expect(answer.usage?.prompt_tokens).toBeGreaterThan(5);
    expect(answer.usage?.completion_tokens).toBeGreaterThan(3);
    expect(answer.usage?.total_tokens).toBe((answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0));
  });

  it('streams the same answer in several chunks, with usage when asked', async () => {
    const stream = await network.openai.chat.completions.create({
      model: network.model,
      messages: ask('What is the capital of France?'),
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    });
    const pieces: string[] = [];
    const ids = new Set<string>();
    let finish: string | null = null;
    let usage: OpenAI.CompletionUsage | null = null;
    for await (const chunk of stream) {
      ids.add(chunk.id);
      const choice = chunk.choices[0];
      if (choice?.delta.content) pieces.push(choice.delta.content);
      finish = choice?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    expect(pieces.join('')).toBe('The capital of France is Paris.');
    expect(pieces.length).toBeGreaterThan(2);
    expect(ids.size).toBe(1);
    expect(finish).toBe('stop');
    expect(usage?.completion_tokens).toBeGreaterThan(3);
  });

  it('never shows what the model thinks, and counts it', async () => {
    const request = { model: network.model, messages: ask('What is 7 + 8?'), temperature: 0, seed: 1 };
    const answer = await network.openai.chat.completions.create(request);
    expect(answer.choices[0]?.message.content).toMatch(/15/);
    expect(answer.choices[0]?.message.content).not.toMatch(/think/);
    expect(answer.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(5);
    let streamed = '';
    for await (const chunk of await network.openai.chat.completions.create({ ...request, stream: true })) {
      streamed += chunk.choices[0]?.delta.content ?? '';
    }
    expect(streamed).toBe(answer.choices[0]?.message.content);
  });

  it('honours max_tokens exactly', async () => {
    for (const maxTokens of [1, 5]) {
      const answer = await network.openai.chat.completions.create({
        model: network.model,
        messages: ask('Tell me a story about Mia.'),
        max_tokens: maxTokens,
        temperature: 0,
      });
      expect(answer.choices[0]?.finish_reason).toBe('length');
      expect(answer.usage?.completion_tokens).toBe(maxTokens);
    }
  });

  it('leaves the stop sequence out of the answer, streamed or not', async () => {
    const request = { model: network.model, messages: ask('Tell me a story about Mia.'), temperature: 0, seed: 1 };
    const whole = (await network.openai.chat.completions.create(request)).choices[0]?.message.content ?? '';
    const stop = whole.slice(Math.floor(whole.length / 2), Math.floor(whole.length / 2) + 7);
    const kept = whole.slice(0, whole.indexOf(stop));
    expect(kept.length).toBeGreaterThan(10);
    const answer = await network.openai.chat.completions.create({ ...request, stop: ['not in there', stop] });
    expect(answer.choices[0]?.message.content).toBe(kept);
    expect(answer.choices[0]?.finish_reason).toBe('stop');
    let streamed = '';
    for await (const chunk of await network.openai.chat.completions.create({ ...request, stop, stream: true })) {
      streamed += chunk.choices[0]?.delta.content ?? '';
    }
    expect(streamed).toBe(kept);
  });

  it('gives several choices, each as a request of its own with the next seed gives it', async () => {
    const request = { model: network.model, messages: ask('Tell me a story about Leo.'), temperature: 1.5, max_tokens: 60 };
    const { openai } = network;
    const several = await openai.chat.completions.create({ ...request, n: 3, seed: 7 }).withResponse();
    const texts = several.data.choices.map(({ index, message }) => [index, message.content]);
    const single = await Promise.all(
      [7, 8, 9].map((seed) => openai.chat.completions.create({ ...request, seed, provider_serial: serialOf(several.response) } as never)),
    );
    expect(texts).toEqual(single.map(({ choices }, index) => [index, choices[0]?.message.content]));
    expect(new Set(texts.map(([, text]) => text)).size).toBeGreaterThan(1);
    const tokensOf = (answers: readonly OpenAI.ChatCompletion[]) =>
      answers.reduce((total, { usage }) => total + (usage?.completion_tokens ?? 0), 0);
    expect(several.data.usage?.prompt_tokens).toBe(single[0]?.usage?.prompt_tokens);
    expect(several.data.usage?.completion_tokens).toBe(tokensOf(single));
    const streamed: string[] = ['', '', ''];
    for await (const { choices } of await openai.chat.completions.create({ ...request, n: 3, seed: 7, stream: true })) {
      for (const { index, delta } of choices) streamed[index] += delta.content ?? '';
    }
    expect(streamed).toEqual(texts.map(([, text]) => text));
  });

  it('gives the same text for the same seed, also while others ask', async () => {
    const request = { model: network.model, messages: ask('Tell me a story about Leo.'), temperature: 1.5, seed: 4711, max_tokens: 60 };
    const models = await network.openai.chat.completions.create(request);
    const noise = Array.from({ length: 4 }, (_, i) =>
      network.openai.chat.completions.create({ model: network.model, messages: ask(`Tell me a story about Anna ${i}.`), max_tokens: 60 }),
    );
    const again = await network.openai.chat.completions.create(request);
    const other = await network.openai.chat.completions.create({ ...request, seed: 4712 });
    await Promise.all(noise);
    expect(again.choices[0]?.message.content).toBe(models.choices[0]?.message.content);
    expect(other.choices[0]?.message.content).not.toBe(models.choices[0]?.message.content);
  });

  it('may break off a stream, and the network goes on', async () => {
    const stream = await network.openai.chat.completions.create({
      model: network.model,
      messages: ask('Tell me a story about Noah.'),
      stream: true,
    });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    const controller = new AbortController();
    await expect.poll(() => activeJobs()).toBe(0);
    const endless = { prompt: '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20', temperature: 0, max_tokens: 2000 };
    const plain = network.openai.completions.create({ model: network.model, ...endless }, { signal: controller.signal });
    const isAborted = expect(plain).rejects.toThrow(/abort/i);
    await expect.poll(() => activeJobs()).toBe(1);
    controller.abort();
    await isAborted;
    // Sooner than the coordinator frees the slot of an agent that does not report the end.
    await expect.poll(() => activeJobs(), { timeout: 20_000 }).toBe(0);
    const answer = await network.openai.chat.completions.create({ model: network.model, messages: ask('Hello!'), temperature: 0 });
    expect(answer.choices[0]?.message.content).toMatch(/Hello/);
  });

  it('answers many at once, each its own question', async () => {
    const capitals = {
      France: 'Paris',
      Japan: 'Tokyo',
      Italy: 'Rome',
      Spain: 'Madrid',
      Egypt: 'Cairo',
      Peru: 'Lima',
      Norway: 'Oslo',
      Sweden: 'Stockholm',
    };
    const answers = await Promise.all(
      Object.keys(capitals).map((country) =>
        network.openai.chat.completions.create({
          model: network.model,
          messages: ask(`What is the capital of ${country}?`),
          temperature: 0,
        }),
      ),
    );
    expect(answers.map((answer) => answer.choices[0]?.message.content)).toEqual(
      Object.entries(capitals).map(([country, capital]) => `The capital of ${country} is ${capital}.`),
    );
  });

  it('lists the model with its providers', async () => {
    const models = [];
    for await (const model of network.openai.models.list()) models.push(model);
    expect(models).toHaveLength(1);
    expect(models[0]).toMatchObject({
      id: network.model,
      object: 'model',
      context_length: expect.any(Number),
      max_output_tokens: expect.any(Number),
      metadata: { model_type: 'text', quantization: '8bit', provider_count: 2, attested_providers: 2, trust_level: 'self_signed' },
    });
  });

  it.each<[string, Record<string, unknown>, number, string | null]>([
    ['an unknown model', { model: 'no-such-model' }, 404, 'model_not_found'],
    ['a wrong temperature', { temperature: 3 }, 400, null],
    ['no messages', { messages: [] }, 400, null],
    ['too many choices', { n: 17 }, 400, null],
    ['a prompt beyond the context', { messages: ask('word '.repeat(20_000)) }, 400, 'context_length_exceeded'],
  ])('hears of %s as an API error', async (_, change, status, code) => {
    const request = { model: network.model, messages: ask('Hello!'), ...change } as OpenAI.ChatCompletionCreateParamsNonStreaming;
    const error = await network.openai.chat.completions.create(request).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(APIError);
    expect((error as APIError).status).toBe(status);
    if (code !== null) expect((error as APIError).code).toBe(code);
    const streamed = await network.openai.chat.completions.create({ ...request, stream: true }).catch((reason: unknown) => reason);
    expect((streamed as APIError).status).toBe(status);
  });
});

describe('the answer', () => {
  it('carries every header of the specification', async () => {
    const response = await network.post('/v1/chat/completions', { model: network.model, messages: ask('Hello!') });
    const body = Buffer.from(await response.arrayBuffer());
    const { headers } = response;
    expect(headers.get('x-response-hash')).toBe(createHash('sha256').update(body).digest('hex'));
    expect(headers.get('x-provider-attested')).toBe('true');
    expect(headers.get('x-provider-trust-level')).toBe('self_signed');
    expect(headers.get('x-provider-secure-enclave')).toBe('false');
    expect(headers.get('x-provider-mda-verified')).toBe('false');
    for (const name of ['chip', 'id', 'model', 'serial']) expect(headers.get(`x-provider-${name}`)).toMatch(/\S/);
    expect(headers.get('x-attestation-device-serial')).toBe(headers.get('x-provider-serial'));
    expect(headers.get('x-se-signature')).toMatch(/^[A-Za-z0-9+/]+=*$/);
    expect(Buffer.from(headers.get('x-attestation-se-public-key') ?? '', 'base64')).toHaveLength(65);
    expect(headers.get('x-inference-job-id')).toBeNull();
  });

  it('can be had from one chosen machine, or not at all', async () => {
    const feed = (await (await fetch(`${network.baseUrl}/v1/providers/attestation`)).json()) as { providers: { serial_number: string }[] };
    expect(feed.providers).toHaveLength(2);
    for (const { serial_number: serial } of feed.providers) {
      const response = await network.post('/v1/chat/completions', { model: network.model, messages: ask('Hi'), provider_serial: serial });
      expect(response.headers.get('x-provider-serial')).toBe(serial);
    }
    const nobody = await network.post('/v1/chat/completions', { model: network.model, messages: ask('Hi'), provider_serial: 'NOSUCH' });
    expect(nobody.status).toBeGreaterThanOrEqual(400);
  });
});

describe('a prompt', () => {
  it('and its answer are found in no log, no database and no file', async () => {
    const canary = 'canary zebrafinch quixotry';
    const repeat = { model: network.model, messages: ask(`Repeat after me: ${canary}`), temperature: 0 };
    await network.openai.chat.completions.create(repeat);
    for await (const _ of await network.openai.chat.completions.create({ ...repeat, stream: true }));
    await network.post('/v1/chat/completions', { ...repeat, temperature: 9 });
    await network.post('/v1/chat/completions', `{"model":"${network.model}","messages":[{"role":"user","content":"${canary}"`);
    await network.post('/v1/chat/completions', { ...repeat, model: 'no-such-model' });
    const admin = await fetch(`${network.baseUrl}/admin/v1/providers`, { headers: { authorization: `Bearer ${network.adminKey}` } });
    expect(await admin.text()).not.toContain('zebrafinch');
    expect(filesHolding(network.dataDir, 'zebrafinch')).toEqual([]);
    expect(filesHolding(network.logDir, 'listening')).toHaveLength(1);
  });
});

async function activeJobs(): Promise<number> {
  const response = await fetch(`${network.baseUrl}/admin/v1/providers`, { headers: { authorization: `Bearer ${network.adminKey}` } });
  const { providers } = (await response.json()) as { providers: { running_jobs: number }[] };
  return providers.reduce((sum, provider) => sum + provider.running_jobs, 0);
}
