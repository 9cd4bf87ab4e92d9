/** Requests for several choices (`n`), through the official SDK. */
import { describe, expect, it } from 'vitest';
import { formatFor } from '../src/formats.js';
import type { OutputEvent } from '../src/output-event.js';
import { eventStream, sdkClient } from './sdk-client.js';

const responseMetadata = { responseId: 'cmpl-5f0c', created: 1_790_000_000, model: 'org/model' };
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const finish: OutputEvent = { type: 'finish', reason: 'length', usage, hiddenTokens: 0 };
const logprob = (token: string) => ({ token, logprob: -0.5, bytes: null, top_logprobs: [] });
const events: OutputEvent[] = [
  { type: 'start', promptTokens: 11 },
  { type: 'text', text: 'one', logprobs: [logprob('one')] },
  { type: 'text', text: ' two', logprobs: [logprob(' two')] },
  { type: 'choice_finish', reason: 'length' },
  { type: 'choice_finish', reason: 'stop' },
  { type: 'tool_call_start', index: 0, id: 'call_1', name: 'f' },
  { type: 'tool_call_arguments', index: 0, delta: '{}' },
  { type: 'choice_finish', reason: 'tool_calls' },
  finish,
];
const textEvents = events.filter(({ type }) => !type.startsWith('tool_call'));
const messages = [{ role: 'user' as const, content: 'Hello' }];
const bytesOf = (json: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(json));

function clientFor(endpoint: '/v1/chat/completions' | '/v1/completions', output: readonly OutputEvent[]) {
  return sdkClient((body) => {
    const { request, answer } = formatFor(endpoint).parse(body);
    if (request.stream) return eventStream(`${answer.stream(responseMetadata).render(...output)}data: [DONE]\n\n`);
    const renderer = answer.plain(responseMetadata);
    renderer.add(...output);
    return new Response(renderer.body(), { headers: { 'content-type': 'application/json' } });
  }).client;
}

it.each(['/v1/chat/completions', '/v1/completions'] as const)('are counted in the limits of %s', (endpoint) => {
  const prompt = endpoint === '/v1/completions' ? { prompt: 'a' } : { messages };
  const parsed = (members: object) => formatFor(endpoint).parse(bytesOf({ model: 'm', ...prompt, ...members }));
  expect(parsed({ n: 3, max_tokens: 10 })).toMatchObject({ request: { choices: 3, maxTokens: 10 }, params: { choices: 3, maxTokens: 30 } });
  expect(parsed({ n: 16 }).params).toMatchObject({ choices: 16, maxTokens: 16 * 8192 });
  for (const members of [{}, { n: null }, { n: 1 }]) {
    expect(parsed(members)).toMatchObject({ request: { choices: 1 }, params: { maxTokens: null } });
    expect(parsed(members).params).not.toHaveProperty('choices');
  }
});

it('echo puts the prompt before each choice, streamed or not', async () => {
  const client = clientFor('/v1/completions', textEvents);
  const body = { model: 'm', prompt: 'zero ', n: 3, echo: true };
  const expected = ['zero one two', 'zero ', 'zero '];
  expect((await client.completions.create(body)).choices.map(({ text }) => text)).toEqual(expected);
  const streamed = ['', '', ''];
  for await (const { choices } of await client.completions.create({ ...body, stream: true })) {
    for (const { index, text } of choices) streamed[index] += text;
  }
  expect(streamed).toEqual(expected);
});

describe('chat completions', () => {
  it('have a message each', async () => {
    const { choices, usage: billed } = await clientFor('/v1/chat/completions', events).chat.completions.create({
      model: 'm',
      messages,
      n: 3,
    });
    expect(choices.map(({ index, finish_reason }) => [index, finish_reason])).toEqual([
      [0, 'length'],
      [1, 'stop'],
      [2, 'tool_calls'],
    ]);
    expect(choices.map(({ message }) => message.content)).toEqual(['one two', '', null]);
    expect(choices[2]?.message.tool_calls).toMatchObject([{ id: 'call_1', function: { name: 'f', arguments: '{}' } }]);
    expect(billed).toMatchObject(usage);
  });

  it('are streamed one after another, each with its role, and with one usage', async () => {
    const client = clientFor('/v1/chat/completions', events);
    const stream = await client.chat.completions.create({
      model: 'm',
      messages,
      n: 3,
      stream: true,
      stream_options: { include_usage: true },
    });
    const deltas: unknown[] = [];
    const usages: unknown[] = [];
    for await (const { choices, usage: billed } of stream) {
      for (const { index, delta, finish_reason } of choices) deltas.push([index, finish_reason ?? delta.content ?? delta.tool_calls]);
      if (billed) usages.push([choices.length, billed.total_tokens]);
    }
    expect(deltas).toEqual([
      [0, ''],
      [0, 'one'],
      [0, ' two'],
      [0, 'length'],
      [1, ''],
      [1, 'stop'],
      [2, undefined],
      [2, [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }]],
      [2, [{ index: 0, function: { arguments: '{}' } }]],
      [2, 'tool_calls'],
    ]);
    expect(usages).toEqual([[0, 18]]);
  });

  it('are collected by the helper of the SDK', async () => {
    const stream = clientFor('/v1/chat/completions', events).chat.completions.stream({ model: 'm', messages, n: 3 });
    const { choices } = await stream.finalChatCompletion();
    // The SDK helper parses empty content as null.
    expect(choices.map(({ message }) => message.content)).toEqual(['one two', null, null]);
  });
});

describe('legacy completions', () => {
  it('have a text each, with offsets of its own', async () => {
    const client = clientFor('/v1/completions', textEvents);
    const { choices } = await client.completions.create({ model: 'm', prompt: 'a', n: 3, logprobs: 0 });
    expect(choices.map(({ index, text, finish_reason }) => [index, text, finish_reason])).toEqual([
      [0, 'one two', 'length'],
      [1, '', 'stop'],
      [2, '', 'stop'],
    ]);
    expect(choices[0]?.logprobs?.text_offset).toEqual([0, 3]);
  });

  it('are streamed one after another', async () => {
    const stream = await clientFor('/v1/completions', textEvents).completions.create({ model: 'm', prompt: 'a', n: 3, stream: true });
    const seen: unknown[] = [];
    for await (const { choices } of stream) seen.push(...choices.map(({ index, text, finish_reason }) => [index, finish_reason ?? text]));
    expect(seen).toEqual([
      [0, 'one'],
      [0, ' two'],
      [0, 'length'],
      [1, 'stop'],
      [2, 'stop'],
    ]);
  });
});
