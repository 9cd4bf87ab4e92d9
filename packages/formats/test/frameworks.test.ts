import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatAnthropic } from '@langchain/anthropic';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, jsonSchema, type LanguageModel, streamText, type ToolSet, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import type { OutputEvent } from '../src/output-event.js';
import { gateway } from './gateway.js';
import * as outputs from './outputs.js';

const baseURL = 'http://gateway.invalid/v1';
const args = { city: 'Genève', days: [1, 2] };
const parameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const }, days: { type: 'array' as const, items: { type: 'number' as const } } },
};
/** The package's tool types do not compile under exactOptionalPropertyTypes. */
const tools = {
  weather: tool({ description: 'Weather', inputSchema: jsonSchema(parameters) }),
  time: tool({ description: 'Time', inputSchema: jsonSchema({ type: 'object' as const, properties: {} }) }),
} as unknown as ToolSet;

const MODELS: readonly [string, (fetch: typeof globalThis.fetch) => LanguageModel][] = [
  ['chat', (fetch) => createOpenAI({ apiKey: 'k', baseURL, fetch }).chat('m')],
  ['compatible chat', (fetch) => createOpenAICompatible({ name: 'gw', apiKey: 'k', baseURL, fetch })('m')],
  ['completions', (fetch) => createOpenAI({ apiKey: 'k', baseURL, fetch }).completion('m')],
  ['responses', (fetch) => createOpenAI({ apiKey: 'k', baseURL, fetch }).responses('m')],
  ['messages', (fetch) => createAnthropic({ apiKey: 'k', baseURL, fetch })('m')],
];

describe.each(MODELS)('the AI SDK, %s', (_name, modelOf) => {
  const model = (output: readonly OutputEvent[]) => modelOf(gateway(output).fetch as typeof globalThis.fetch);

  it('reads a text, streamed or not', async () => {
    const plain = await generateText({ model: model(outputs.text), prompt: 'Hello', maxOutputTokens: 100, maxRetries: 0 });
    expect(plain.text).toBe(outputs.TEXT);
    expect(plain.finishReason).toBe('stop');
    expect(plain.usage.outputTokens).toBe(7);
    const errors: unknown[] = [];
    const stream = streamText({
      model: model(outputs.text),
      prompt: 'Hello',
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    });
    expect(await stream.text).toBe(outputs.TEXT);
    expect(await stream.finishReason).toBe('stop');
    expect(errors).toEqual([]);
  });
});

describe.each(MODELS.filter(([name]) => name !== 'completions'))('the AI SDK, %s', (_name, modelOf) => {
  const model = (output: readonly OutputEvent[]) => modelOf(gateway(output).fetch as typeof globalThis.fetch);

  it('reads tool calls, streamed or not', async () => {
    const expected = [
      { toolCallId: 'call_a', toolName: 'weather', input: args },
      { toolCallId: 'call_b', toolName: 'time', input: {} },
    ];
    const plain = await generateText({ model: model(outputs.calls), prompt: 'Hello', maxOutputTokens: 100, tools, maxRetries: 0 });
    expect(plain.toolCalls).toMatchObject(expected);
    expect(plain.finishReason).toBe('tool-calls');
    const stream = streamText({ model: model(outputs.calls), prompt: 'Hello', maxOutputTokens: 100, tools, maxRetries: 0 });
    expect(await stream.toolCalls).toMatchObject(expected);
    expect(await stream.finishReason).toBe('tool-calls');
  });
});

it.each([
  ['chat', 'without being told anything', {}],
  ['compatible chat', 'without being told anything', {}],
  ['responses', 'when told that nothing is stored', { openai: { store: false } }],
  ['messages', 'without being told anything', {}],
])('the AI SDK, %s, takes its own answer into the next turn %s', async (name, _how, providerOptions) => {
  const modelOf = MODELS.find(([each]) => each === name)?.[1];
  if (modelOf === undefined) throw new Error(`no model ${name}`);
  const { fetch, requests } = gateway(outputs.text);
  const call = { model: modelOf(fetch as typeof globalThis.fetch), maxOutputTokens: 100, maxRetries: 0, providerOptions };
  const { response } = await generateText({ ...call, prompt: 'Hello' });
  const messages = [{ role: 'user' as const, content: 'Hello' }, ...response.messages, { role: 'user' as const, content: 'And?' }];
  expect((await generateText({ ...call, messages })).text).toBe(outputs.TEXT);
  expect(requests.at(-1)?.request.prompt).toMatchObject({
    messages: [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: outputs.TEXT },
      { role: 'user', content: 'And?' },
    ],
  });
});

describe('LangChain', () => {
  const CHATS = [
    [
      'chat',
      (fetch: typeof globalThis.fetch) => new ChatOpenAI({ model: 'm', apiKey: 'k', maxRetries: 0, configuration: { baseURL, fetch } }),
    ],
    [
      'responses',
      (fetch: typeof globalThis.fetch) =>
        new ChatOpenAI({ model: 'm', apiKey: 'k', maxRetries: 0, useResponsesApi: true, configuration: { baseURL, fetch } }),
    ],
    [
      'messages',
      (fetch: typeof globalThis.fetch) =>
        new ChatAnthropic({ model: 'm', apiKey: 'k', maxRetries: 0, clientOptions: { baseURL: 'http://gateway.invalid', fetch } }),
    ],
  ] as const;

  it.each(CHATS)('%s: reads a text and tool calls, streamed or not', async (_name, chatOf) => {
    const chat = (output: readonly OutputEvent[]) => chatOf(gateway(output).fetch as typeof globalThis.fetch);
    expect((await chat(outputs.text).invoke('Hello')).text).toBe(outputs.TEXT);
    let text = '';
    for await (const chunk of await chat(outputs.text).stream('Hello')) text += chunk.text;
    expect(text).toBe(outputs.TEXT);
    const weather = { type: 'function' as const, function: { name: 'weather', description: 'Weather', parameters } };
    const answer = await chat(outputs.calls).bindTools([weather]).invoke('Hello');
    expect(answer.tool_calls).toMatchObject([
      { id: 'call_a', name: 'weather', args },
      { id: 'call_b', name: 'time', args: {} },
    ]);
  });
});
