/** Every inference endpoint through a whole network with the real model, called by clients of each format. */
import { createHash, createPublicKey, verify } from 'node:crypto';
import Anthropic from '@anthropic-ai/sdk';
import { p256PublicKeyPem } from '@inference/protocol/crypto';
import { verifyStream } from '@inference/verifier';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DemoNetwork } from './support/demo-network.js';
import { failuresOfSharedNetwork, sharedNetwork } from './support/shared-network.js';

let network: DemoNetwork;
let anthropic: Anthropic;

beforeAll(async () => {
  network = await sharedNetwork();
  anthropic = new Anthropic({ baseURL: network.baseUrl, apiKey: network.apiKey, maxRetries: 0 });
});
afterAll(() => expect(failuresOfSharedNetwork()).toEqual([]));

const question = 'What is the capital of France?';
const answer = 'The capital of France is Paris.';

describe('the official Anthropic client', () => {
  it('gets a message, streamed or not', async () => {
    const request = { model: network.model, max_tokens: 100, temperature: 0, messages: [{ role: 'user' as const, content: question }] };
    const message = await anthropic.messages.create(request);
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: answer }],
    });
    expect(message.usage.input_tokens).toBeGreaterThan(5);
    const streamed = await anthropic.messages.stream(request).finalMessage();
    expect(streamed.content).toMatchObject([{ type: 'text', text: answer }]);
    expect(streamed.usage.output_tokens).toBe(message.usage.output_tokens);
  });

  it('counts tokens without generating any', async () => {
    const counted = await anthropic.messages.countTokens({ model: network.model, messages: [{ role: 'user', content: question }] });
    expect(counted.input_tokens).toBeGreaterThan(5);
    const long = { model: network.model, messages: [{ role: 'user' as const, content: 'word '.repeat(5000) }] };
    expect((await anthropic.messages.countTokens(long)).input_tokens).toBeGreaterThan(4000);
    await expect(anthropic.messages.create({ ...long, max_tokens: 5 })).rejects.toThrow(/prompt is too long: \d+ tokens > \d+ maximum/);
  });

  it('hears of errors in its own shape', async () => {
    const error = await anthropic.messages
      .create({ model: 'no-such-model', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    // Paths that the gateway does not serve also give errors in this format.
    for (const ask of [() => anthropic.models.retrieve('no-such-model'), () => anthropic.beta.files.list()]) {
      await expect(ask()).rejects.toMatchObject({ status: 404, type: 'not_found_error' });
    }
  });

  it('lists the models, as its own format describes them', async () => {
    const page = await anthropic.models.list({ limit: 1000 });
    const described = page.data.find(({ id }) => id === network.model);
    expect(described).toMatchObject({ type: 'model', display_name: expect.any(String), object: 'model', owned_by: expect.any(String) });
    expect(Date.parse(described?.created_at ?? '')).toBeLessThanOrEqual(Date.now());
    expect(described?.max_input_tokens).toBeGreaterThan(1000);
    expect([page.has_more, page.first_id, page.last_id]).toEqual([false, page.data.at(0)?.id, page.data.at(-1)?.id]);
    expect(await anthropic.models.retrieve(network.model)).toMatchObject({ ...described });
  });
});

describe('the official OpenAI client', () => {
  it('gets a response, streamed or not', async () => {
    const request = { model: network.model, input: question, temperature: 0 };
    const response = await network.openai.responses.create(request);
    expect(response.output_text).toBe(answer);
    expect(response.status).toBe('completed');
    let text = '';
    let last = '';
    for await (const event of await network.openai.responses.create({ ...request, stream: true })) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      last = event.type;
    }
    expect(text).toBe(answer);
    expect(last).toBe('response.completed');
  });

  it('gets a legacy completion of a raw text', async () => {
    const completion = await network.openai.completions.create({
      model: network.model,
      prompt: `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`,
      temperature: 0,
      max_tokens: 20,
    });
    expect(completion.object).toBe('text_completion');
    expect(completion.choices[0]?.text).toMatch(/\w/);
  });

  it('has a tool called with the arguments of the question', async () => {
    const completion = await network.openai.chat.completions.create({
      model: network.model,
      temperature: 0,
      messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'Get the weather for a city',
            parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
          },
        },
      ],
    });
    const call = completion.choices[0]?.message.tool_calls?.[0];
    expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather' } });
    expect(JSON.parse(call?.type === 'function' ? call.function.arguments : '')).toEqual({ city: 'Paris' });
    expect(completion.choices[0]?.finish_reason).toBe('tool_calls');
  });
});

describe('chat completions', () => {
  const hi = { messages: [{ role: 'user' as const, content: question }], max_tokens: 20, temperature: 0 };

  it('name the engine and the tier, whole and streamed', async () => {
    const request = { model: network.model, ...hi, service_tier: 'auto' as const };
    const whole = await network.openai.chat.completions.create(request);
    expect(whole.system_fingerprint).toMatch(/^fp_[0-9a-f]{12}$/);
    expect(whole.service_tier).toBe('default');
    for await (const chunk of await network.openai.chat.completions.create({ ...request, stream: true })) {
      if (chunk.choices.length === 0) continue;
      expect([chunk.system_fingerprint, chunk.service_tier]).toEqual([whole.system_fingerprint, 'default']);
    }
  });

  it('serve clients that read a choice out of every event, and are verified', async () => {
    const headers = { 'X-Inference-Signature': 'comment' };
    const stream = await network.openai.chat.completions.create({ model: network.model, ...hi, stream: true }, { headers });
    let text = '';
    // Like old snippets, which throw on an event without choices.
    for await (const chunk of stream) text += (chunk.choices[0] as (typeof chunk.choices)[number]).delta.content ?? '';
    expect(text).toBe(answer);
    const raw = await network.post('/v1/chat/completions', { model: network.model, ...hi, stream: true }, { headers });
    const trusted = { publicKey: raw.headers.get('x-attestation-se-public-key') ?? '' };
    expect(verifyStream(new Uint8Array(await raw.arrayBuffer()), trusted)).toMatchObject({ verified: true });
  });

  it('call functions as the predecessor of tools had them, and read the result', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const functions = [{ name: 'get_weather', description: 'Get the weather for a city', parameters }];
    const messages = [{ role: 'user' as const, content: 'What is the weather in Paris?' }];
    const request = { model: network.model, messages, functions, temperature: 0 };
    const { choices } = await network.openai.chat.completions.create(request);
    const message = choices[0]?.message;
    expect(choices[0]?.finish_reason).toBe('function_call');
    expect(message?.function_call?.name).toBe('get_weather');
    expect(JSON.parse(message?.function_call?.arguments ?? '')).toEqual({ city: 'Paris' });
    let streamed = '';
    for await (const chunk of await network.openai.chat.completions.create({ ...request, stream: true })) {
      streamed += chunk.choices[0]?.delta.function_call?.arguments ?? '';
    }
    expect(streamed).toBe(message?.function_call?.arguments);
    const next = await network.openai.chat.completions.create({
      model: network.model,
      temperature: 0,
      max_tokens: 20,
      functions,
      function_call: 'none',
      messages: [
        ...messages,
        { role: 'assistant', content: null, function_call: message?.function_call ?? null },
        { role: 'function', name: 'get_weather', content: 'Sunny.' },
      ],
    });
    expect(next.choices[0]?.message.content).toMatch(/\w/);
  });
});

describe('the reason why an answer ended', () => {
  const [start = '', end = ''] = answer.split(' is ');
  const stop = [` is ${end}`];
  const messages = [{ role: 'user' as const, content: question }];
  const reasons = (choices: readonly { readonly finish_reason: string | null }[]) => choices.map((choice) => choice.finish_reason);

  it('is a stop sequence, in the terms of each format, streamed or not', async () => {
    const chat = { model: network.model, messages, temperature: 0, stop };
    const plain = await network.openai.chat.completions.create(chat);
    const streamed = await network.openai.chat.completions.stream(chat).finalChatCompletion();
    for (const { choices } of [plain, streamed]) expect(choices).toMatchObject([{ finish_reason: 'stop', message: { content: start } }]);
    const request = { model: network.model, messages, temperature: 0, max_tokens: 100, stop_sequences: stop };
    for (const message of [await anthropic.messages.create(request), await anthropic.messages.stream(request).finalMessage()])
      expect(message).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: stop[0], content: [{ text: start }] });
  });

  it('is that of each choice', async () => {
    const request = { model: network.model, n: 2, seed: 1, max_tokens: 3 };
    const chat = { ...request, messages };
    expect(reasons((await network.openai.chat.completions.create(chat)).choices)).toEqual(['length', 'length']);
    expect(reasons((await network.openai.chat.completions.stream(chat).finalChatCompletion()).choices)).toEqual(['length', 'length']);
    const legacy = { ...request, prompt: question };
    expect(reasons((await network.openai.completions.create(legacy)).choices)).toEqual(['length', 'length']);
    const seen: string[] = [];
    for await (const { choices } of await network.openai.completions.create({ ...legacy, stream: true })) {
      for (const { index, finish_reason: reason } of choices) if (reason !== null) seen.push(`${index} ${reason}`);
    }
    expect(seen).toEqual(['0 length', '1 length']);
  });

  it('is the token limit in streams of Messages and Responses, too', async () => {
    const message = await anthropic.messages.stream({ model: network.model, messages, max_tokens: 3 }).finalMessage();
    expect(message).toMatchObject({ stop_reason: 'max_tokens', stop_sequence: null });
    const types: string[] = [];
    const stream = await network.openai.responses.create({ model: network.model, input: question, max_output_tokens: 3, stream: true });
    for await (const event of stream) {
      if (event.type === 'response.incomplete') expect(event.response.incomplete_details?.reason).toBe('max_output_tokens');
      types.push(event.type);
    }
    expect(types.at(-1)).toBe('response.incomplete');
  });
});

describe('an answer beside tools', () => {
  const parameters = { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] };
  const tool = { name: 'get_weather', description: 'Get the weather for a city', parameters };
  const weather = [{ role: 'user' as const, content: 'What is the weather in Paris?' }];

  it('says that the token limit ended it', async () => {
    const request = { model: network.model, messages: [{ role: 'user' as const, content: question }], max_tokens: 3, temperature: 0 };
    const tools = [{ type: 'function' as const, function: tool }];
    const completion = await network.openai.chat.completions.create({ ...request, tools });
    expect(completion.choices[0]?.finish_reason).toBe('length');
    expect(completion.usage?.completion_tokens).toBe(3);
    const message = await anthropic.messages.create({ ...request, tools: [{ name: tool.name, input_schema: parameters }] });
    expect(message.stop_reason).toBe('max_tokens');
    const response = await network.openai.responses.create({
      ...{ model: network.model, input: question, max_output_tokens: 3, temperature: 0 },
      tools: [{ type: 'function', ...tool, strict: false }],
    });
    expect([response.status, response.incomplete_details?.reason]).toEqual(['incomplete', 'max_output_tokens']);
  });

  it('says so of a call, too', async () => {
    const tools = [{ type: 'function' as const, function: tool }];
    const request = { model: network.model, messages: weather, tools, temperature: 0 };
    const whole = await network.openai.chat.completions.create(request);
    expect(whole.choices[0]?.finish_reason).toBe('tool_calls');
    const max_tokens = (whole.usage?.completion_tokens ?? 0) - 1;
    const cut = await network.openai.chat.completions.create({ ...request, max_tokens });
    expect(cut.choices[0]?.finish_reason).toBe('length');
  });

  it('contains no call where none may be made', async () => {
    const tools = [{ type: 'function' as const, function: tool }];
    const request = { model: network.model, messages: weather, tools, tool_choice: 'none' as const, max_tokens: 40, temperature: 0 };
    const { choices } = await network.openai.chat.completions.create(request);
    expect(choices[0]?.message.tool_calls).toBeUndefined();
    expect(choices[0]?.message.content).toMatch(/\w/);
    expect(choices[0]?.message.content).not.toContain('<tool_call>');
  });
});

describe('every format', () => {
  const bodies = (): [string, Record<string, unknown>][] => [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: question }] }],
    ['/v1/completions', { prompt: 'Once upon a time', max_tokens: 12 }],
    ['/v1/responses', { input: question }],
    ['/v1/responses', { messages: [{ role: 'user', content: question }] }],
    ['/v1/messages', { messages: [{ role: 'user', content: question }], max_tokens: 50 }],
  ];

  it('signs the exact bytes, streamed or not', async () => {
    for (const [path, body] of bodies()) {
      const plain = await network.post(path, { model: network.model, ...body });
      expect(plain.status, path).toBe(200);
      const bytes = Buffer.from(await plain.arrayBuffer());
      check(path, bytes, plain.headers.get('x-response-hash'), plain.headers.get('x-se-signature'), plain.headers);

      const stream = await network.post(path, { model: network.model, ...body, stream: true });
      const received = new Uint8Array(await stream.arrayBuffer());
      const trusted = { publicKey: stream.headers.get('x-attestation-se-public-key') ?? '' };
      expect(verifyStream(received, trusted), path).toMatchObject({ verified: true });
      for (const at of [20, Math.floor(received.length / 3)]) {
        const altered = Uint8Array.from(received);
        altered[at] = (altered[at] as number) ^ 1;
        expect(verifyStream(altered, trusted).verified, path).toBe(false);
      }
      expect(stream.headers.get('x-inference-job-id')).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  function check(path: string, bytes: Buffer, hash: string | null, signature: string | null, headers: Headers): void {
    expect(createHash('sha256').update(bytes).digest('hex'), path).toBe(hash);
    const key = createPublicKey(p256PublicKeyPem(Buffer.from(headers.get('x-attestation-se-public-key') ?? '', 'base64')));
    expect(verify('sha256', Buffer.from(hash ?? ''), key, Buffer.from(signature ?? '', 'base64')), path).toBe(true);
  }
});
