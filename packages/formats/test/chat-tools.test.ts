import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import type { OutputEvent } from '../src/output-event.js';
import { gateway } from './gateway.js';
import * as outputs from './outputs.js';

const body = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };
const completion = { model: 'm', prompt: 'Once' };
const weather = { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } };

function clientOf(output: readonly OutputEvent[]) {
  const { fetch, requests } = gateway(output);
  return {
    client: new OpenAI({ apiKey: 'k', baseURL: 'http://gateway.invalid/v1', fetch: fetch as typeof globalThis.fetch, maxRetries: 0 }),
    requests,
  };
}

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

describe('chat completions through the official SDK', () => {
  const toolCalls = [
    { id: 'call_a', type: 'function', function: { name: 'weather', arguments: outputs.ARGUMENTS } },
    { id: 'call_b', type: 'function', function: { name: 'time', arguments: '{}' } },
  ];

  it('tool calls are the same, streamed or not', async () => {
    const { client } = clientOf(outputs.calls);
    const plain = await client.chat.completions.create({ ...body, tools: [weather] });
    const expected = { role: 'assistant', content: 'Let me look.', refusal: null, tool_calls: toolCalls };
    expect(plain.choices[0]).toEqual({ index: 0, message: expected, logprobs: null, finish_reason: 'tool_calls' });
    const helped = await client.chat.completions.stream({ ...body, tools: [weather] }).finalChatCompletion();
    expect(helped.choices[0]).toMatchObject({ message: expected, finish_reason: 'tool_calls' });
  });

  it('a call without text has null content, its id and name once, and its arguments in pieces', async () => {
    const { client } = clientOf(outputs.calls.filter(({ type }) => type !== 'text'));
    expect((await client.chat.completions.create(body)).choices[0]?.message.content).toBeNull();
    const chunks = await collect(await client.chat.completions.create({ ...body, stream: true }));
    expect(chunks.slice(0, 6).map(({ choices }) => choices[0]?.delta)).toEqual([
      { role: 'assistant', content: null, refusal: null },
      { tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"city":"Gen' } }] },
      { tool_calls: [{ index: 0, function: { arguments: 'ève","days":[1,2]}' } }] },
      { tool_calls: [{ index: 1, id: 'call_b', type: 'function', function: { name: 'time', arguments: '' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '{}' } }] },
    ]);
  });

  it('reasoning shows only on request', async () => {
    const { client } = clientOf(outputs.text);
    expect((await client.chat.completions.create(body)).choices[0]?.message).not.toHaveProperty('reasoning_content');
    const asking = { ...body, include_reasoning: true };
    expect((await client.chat.completions.create(asking)).choices[0]?.message).toMatchObject({
      reasoning_content: 'think hard',
      content: outputs.TEXT,
    });
    const deltas = (await collect(await client.chat.completions.create({ ...asking, stream: true }))).map(
      ({ choices }) => choices[0]?.delta,
    );
    expect(deltas.slice(0, 4)).toEqual([
      { role: 'assistant', content: '', refusal: null },
      { reasoning_content: 'think ' },
      { reasoning_content: 'hard' },
      { content: 'Héllo 😀' },
    ]);
  });

  it('log probabilities come with the text', async () => {
    const logprobs = [{ token: 'a', logprob: -0.5, bytes: [97], top_logprobs: [{ token: 'b', logprob: -1, bytes: [98] }] }];
    const { client, requests } = clientOf([{ type: 'text', text: 'a', logprobs }, ...outputs.empty.slice(1)]);
    const asking = { ...body, logprobs: true, top_logprobs: 1 };
    expect((await client.chat.completions.create(asking)).choices[0]?.logprobs).toEqual({ content: logprobs, refusal: null });
    const helped = await client.chat.completions.stream(asking).finalChatCompletion();
    expect(helped.choices[0]?.logprobs).toMatchObject({ content: logprobs });
    expect(requests[0]?.request.logprobs).toBe(1);
    expect((await client.chat.completions.create(body)).choices[0]?.logprobs).toBeNull();
  });

  it('a conversation with calls and results arrives whole', async () => {
    const { client, requests } = clientOf(outputs.text);
    await client.chat.completions.create({
      model: 'm',
      messages: [
        { role: 'user', content: 'Weather?' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 'call_a', content: [{ type: 'text', text: 'Sun' }] },
      ],
      tools: [
        weather,
        { type: 'function', function: { name: 'time', description: 'Tells it.', strict: true, parameters: { type: 'object' } } },
      ],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'time' } }] },
      },
      parallel_tool_calls: false,
      response_format: { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' }, strict: true } },
    });
    expect(requests[0]?.request).toMatchObject({
      prompt: {
        type: 'chat',
        messages: [
          { role: 'user', content: 'Weather?' },
          { role: 'assistant', content: '', reasoning: null, toolCalls: [{ id: 'call_a', name: 'weather', arguments: '{"a":1}' }] },
          { role: 'tool', content: 'Sun', toolCallId: 'call_a', name: 'weather', isError: false },
        ],
      },
      tools: [{ name: 'time', description: 'Tells it.', parameters: { type: 'object' }, strict: true }],
      toolChoice: { type: 'required' },
      parallelToolCalls: false,
      responseFormat: { type: 'json_schema', name: 's', schema: { type: 'object' }, strict: true },
    });
  });
});

describe('legacy completions through the official SDK', () => {
  it('a text is the same, streamed or not', async () => {
    const { client, requests } = clientOf(outputs.text);
    const plain = await client.completions.create({ ...completion, stop: 'END', max_tokens: 5 });
    expect(plain).toEqual({
      id: 'cmpl-5f0c',
      object: 'text_completion',
      created: 1_790_000_000,
      model: 'm',
      choices: [{ text: outputs.TEXT, index: 0, logprobs: null, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 11,
        completion_tokens: 7,
        total_tokens: 18,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
    });
    expect(requests[0]?.request).toMatchObject({ prompt: { type: 'text', text: 'Once' }, stop: ['END'], maxTokens: 5 });
    const chunks = await collect(await client.completions.create({ ...completion, stream: true, stream_options: { include_usage: true } }));
    expect(chunks.map(({ choices }) => choices[0]?.text ?? '').join('')).toBe(outputs.TEXT);
    const deltas = chunks.flatMap(
      ({ choices }) => (choices as readonly { readonly delta?: { readonly content?: string } }[])[0]?.delta ?? [],
    );
    expect(deltas.map(({ content = '' }) => content).join('')).toBe(outputs.TEXT);
    expect(deltas.at(-1)).toEqual({});
    expect(chunks.every(({ object }) => object === 'text_completion')).toBe(true);
    expect(chunks.at(-3)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.at(-2)).toMatchObject({ choices: [], usage: plain.usage });
    expect(chunks.at(-1)).toMatchObject({ choices: [], se_signature: 'MEUCIQ==', response_hash: 'ab'.repeat(32) });
  });

  it('log probabilities are lists side by side', async () => {
    const entry = (token: string) => ({ token, logprob: -0.5, bytes: null, top_logprobs: [{ token, logprob: -0.5, bytes: null }] });
    const { client } = clientOf([
      { type: 'text', text: 'ab', logprobs: [entry('a'), entry('b')] },
      { type: 'text', text: 'c', logprobs: [entry('c')] },
      ...outputs.empty.slice(1),
    ]);
    const expected = {
      tokens: ['a', 'b', 'c'],
      token_logprobs: [-0.5, -0.5, -0.5],
      top_logprobs: [{ a: -0.5 }, { b: -0.5 }, { c: -0.5 }],
      text_offset: [0, 1, 2],
    };
    expect((await client.completions.create({ ...completion, logprobs: 1 })).choices[0]?.logprobs).toEqual(expected);
    const chunks = await collect(await client.completions.create({ ...completion, logprobs: 1, stream: true }));
    expect(chunks.flatMap(({ choices }) => choices[0]?.logprobs?.text_offset ?? [])).toEqual([0, 1, 2]);
  });

  it.each<[string, object]>([
    ['prompt', { prompt: ['a', 'b'] }],
    ['prompt', { prompt: [1] }],
    ['prompt', { prompt: [] }],
    ['prompt', { prompt: [[1, 2], [3]] }],
    ['prompt', { prompt: undefined }],
    ['n', { n: 17 }],
    ['best_of', { best_of: 2 }],
    ['best_of', { best_of: 2, n: 3 }],
    ['best_of', { best_of: 21, n: 1 }],
    ['echo', { echo: true, logprobs: 1 }],
    ['echo', { echo: true, n: 2, prompt: 'x'.repeat(500_001) }],
    ['logit_bias[1]', { logit_bias: { 1: 200 } }],
    ['logprobs', { logprobs: 6 }],
    ['temperature', { temperature: 3 }],
  ])('%s is refused when it is %o', async (param, members) => {
    const { client } = clientOf(outputs.text);
    await expect(client.completions.create({ ...completion, ...members })).rejects.toMatchObject({ status: 400, param });
  });

  it('best_of is accepted where it changes nothing, and a suffix where there is one', async () => {
    const { client, requests } = clientOf(outputs.text);
    for (const members of [{ best_of: 1 }, { best_of: 1, n: 2 }, { best_of: 2, n: 2 }, { best_of: null, suffix: '' }]) {
      await client.completions.create({ ...completion, ...members });
    }
    await client.completions.create({ ...completion, prompt: 'def f():', suffix: 'return 1' });
    expect(requests.map(({ request }) => request.choices)).toEqual([1, 2, 2, 1, 1]);
    expect(requests.at(3)?.request.prompt).not.toHaveProperty('suffix');
    expect(requests.at(4)?.request.prompt).toEqual({ type: 'text', text: 'def f():', suffix: 'return 1' });
  });

  it('a prompt may be an array of one', async () => {
    const { client, requests } = clientOf(outputs.text);
    await client.completions.create({ ...completion, prompt: ['Once'] });
    expect(requests[0]?.request.prompt).toEqual({ type: 'text', text: 'Once' });
  });
});
