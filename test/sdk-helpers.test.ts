/** Helpers of official and popular clients, unmodified: streaming, tool loops, parsers. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { ChatOpenAI } from '@langchain/openai';
import { generateObject, generateText, jsonSchema, type LanguageModel, stepCountIs, streamObject, streamText, tool } from 'ai';
import type OpenAI from 'openai';
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

const question = 'What is the weather in Paris?';
const messages = [{ role: 'user' as const, content: question }];
const name = 'get_weather';
const description = 'Get the weather for a city';
const parameters = { type: 'object' as const, properties: { city: { type: 'string' as const } }, required: ['city'] as ['city'] };
const report = 'sunny';
const tokensOf = ({ usage }: { usage: { input_tokens: number; cache_read_input_tokens: number | null } }): number =>
  usage.input_tokens + (usage.cache_read_input_tokens ?? 0);
/** The demo model's answer to a tool result. */
const conclusion = /sunny/;

describe('the OpenAI client', () => {
  const weather = (cities: string[]) => ({
    type: 'function' as const,
    function: {
      name,
      description,
      parameters,
      parse: JSON.parse as (text: string) => { city: string },
      function: ({ city }: { city: string }) => {
        cities.push(city);
        return report;
      },
    },
  });

  it('puts a stream together as it puts a plain answer', async () => {
    const request = { model: network.model, messages, temperature: 0, seed: 1 };
    const plain = await network.openai.chat.completions.create(request);
    const stream = network.openai.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    let shown = '';
    stream.on('content', (delta) => {
      shown += delta;
    });
    const whole = await stream.finalChatCompletion();
    expect(whole.choices[0]?.message.content).toBe(plain.choices[0]?.message.content);
    expect(shown).toBe(plain.choices[0]?.message.content);
    expect(await stream.totalUsage()).toMatchObject({ total_tokens: plain.usage?.total_tokens });
  });

  it('runs tools until the model has its answer, streamed or not', async () => {
    for (const stream of [false, true]) {
      const cities: string[] = [];
      const request = { model: network.model, messages, temperature: 0, tools: [weather(cities)] };
      const runner = stream
        ? network.openai.chat.completions.runTools({ ...request, stream })
        : network.openai.chat.completions.runTools(request);
      expect(await runner.finalContent()).toMatch(conclusion);
      expect(cities).toEqual(['Paris']);
    }
  });

  it('has a call of a streamed response parsed', async () => {
    const tools: OpenAI.Responses.FunctionTool[] = [
      { type: 'function', name, description, strict: true, parameters: { ...parameters, additionalProperties: false } },
    ];
    const stream = network.openai.responses.stream({ model: network.model, input: question, temperature: 0, tools });
    let deltas = '';
    stream.on('response.function_call_arguments.delta', ({ delta }) => {
      deltas += delta;
    });
    const { output } = await stream.finalResponse();
    expect(output).toMatchObject([{ type: 'function_call', name, parsed_arguments: { city: 'Paris' } }]);
    expect(JSON.parse(deltas)).toEqual({ city: 'Paris' });
  });
});

describe('the Anthropic client', () => {
  it('puts a stream together as it puts a plain message', async () => {
    const request = { model: network.model, max_tokens: 50, temperature: 0, messages };
    const plain = await anthropic.messages.create(request);
    const stream = anthropic.messages.stream(request);
    let shown = '';
    stream.on('text', (delta) => {
      shown += delta;
    });
    expect((await stream.finalMessage()).content).toEqual(plain.content);
    expect(await stream.finalText()).toBe(shown);
  });

  it('runs tools until the model has its answer, streamed or not', async () => {
    for (const stream of [false, true]) {
      const cities: string[] = [];
      const run = ({ city }: { city: string }): string => {
        cities.push(city);
        return report;
      };
      const tools = [betaTool({ name, description, inputSchema: parameters, run })];
      const request = { model: network.model, max_tokens: 100, temperature: 0, messages };
      const usual = { ...request, tools, stream };
      const whole = await anthropic.beta.messages.toolRunner({ ...usual, thread: false }).runUntilDone();
      expect(JSON.stringify(whole.content)).toMatch(conclusion);
      // Default behaviour: the server stores the conversation, and the client sends new messages only.
      const last = await anthropic.beta.messages.toolRunner(usual).runUntilDone();
      expect(last.content).toEqual(whole.content);
      expect(tokensOf(last)).toBe(tokensOf(whole));
      expect(cities).toEqual(['Paris', 'Paris']);
    }
  });
});

describe('the Vercel AI SDK', () => {
  const models = (): [string, LanguageModel][] => {
    const openai = createOpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey });
    const claude = createAnthropic({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey });
    return [
      ['chat', openai.chat(network.model)],
      ['responses', openai.responses(network.model)],
      ['messages', claude(network.model)],
    ];
  };
  // The schema identifier that zod writes.
  const $schema = 'http://json-schema.org/draft-07/schema#';
  const inputSchema = jsonSchema<{ city: string }>({ $schema, ...parameters, additionalProperties: false });
  const shared = { temperature: 0, maxOutputTokens: 100, maxRetries: 0 } as const;

  it.each([0, 1, 2])('runs tools in several steps, streamed or not (format %i)', async (index) => {
    const [format, model] = models()[index] as [string, LanguageModel];
    const tools = { [name]: tool({ description, inputSchema, execute: async () => report }) };
    const request = { ...shared, model, prompt: question, tools, stopWhen: stepCountIs(3) };
    const whole = await generateText(request);
    expect(whole.text, format).toMatch(conclusion);
    expect(
      whole.steps.flatMap((step) => step.toolCalls.map((call) => call.input)),
      format,
    ).toEqual([{ city: 'Paris' }]);
    const stream = streamText(request);
    const kinds = new Set<string>();
    for await (const part of stream.fullStream) kinds.add(part.type);
    expect(await stream.text, format).toBe(whole.text);
    for (const kind of ['tool-input-delta', 'tool-call', 'tool-result', 'text-delta', 'finish']) expect(kinds, format).toContain(kind);
  });

  it.each([0, 1, 2])('has a tool called that must be (format %i)', async (index) => {
    const [format, model] = models()[index] as [string, LanguageModel];
    const definition = { description, inputSchema, outputSchema: jsonSchema<string>({ type: 'string' }) };
    const tools = { [name]: tool(definition), other: tool({ ...definition, description: 'Something else' }) };
    for (const toolChoice of ['required', { type: 'tool', toolName: name }] as const) {
      const { toolCalls } = await generateText({ ...shared, model, prompt: 'Hello!', tools, toolChoice });
      expect(toolCalls, format).toHaveLength(1);
      expect(Object.keys(toolCalls[0]?.input as object), format).toEqual(['city']);
    }
  });

  it.each([0, 1, 2])('gets an object of a schema, streamed or not (format %i)', async (index) => {
    const [format, model] = models()[index] as [string, LanguageModel];
    const schema = jsonSchema<{ city: string; unit: string }>({
      type: 'object',
      properties: { city: { type: 'string', maxLength: 20 }, unit: { type: 'string', enum: ['c', 'f'] } },
      required: ['city', 'unit'],
      additionalProperties: false,
    });
    const { object } = await generateObject({ ...shared, model, schema, prompt: question });
    expect(['c', 'f'], format).toContain(object.unit);
    expect(typeof object.city, format).toBe('string');
    const stream = streamObject({ ...shared, model, schema, prompt: question });
    let parts = 0;
    for await (const _ of stream.partialObjectStream) parts++;
    expect(await stream.object, format).toEqual(object);
    expect(parts, format).toBeGreaterThan(1);
  });
});

describe('LangChain', () => {
  const clients = (): [string, BaseChatModel][] => {
    const openai = { model: network.model, apiKey: network.apiKey, temperature: 0, maxTokens: 100, maxRetries: 0 };
    const configuration = { baseURL: `${network.baseUrl}/v1` };
    return [
      ['chat', new ChatOpenAI({ ...openai, configuration })],
      ['responses', new ChatOpenAI({ ...openai, configuration, useResponsesApi: true })],
      ['messages', new ChatAnthropic({ ...openai, anthropicApiUrl: network.baseUrl })],
    ];
  };
  const definition = { type: 'function' as const, function: { name, description, parameters } };

  it.each([0, 1, 2])('gets calls of bound tools, streamed or not (format %i)', async (index) => {
    const [format, client] = clients()[index] as [string, BaseChatModel];
    const bound = client.bindTools?.([definition]);
    const expected = [{ name, args: { city: 'Paris' } }];
    const whole = (await bound?.invoke(question)) as { tool_calls?: unknown } | undefined;
    expect(whole?.tool_calls, format).toMatchObject(expected);
    let streamed: { tool_calls?: unknown; concat(chunk: unknown): unknown } | undefined;
    for await (const chunk of (await bound?.stream(question)) ?? []) {
      streamed = (streamed === undefined ? chunk : streamed.concat(chunk)) as typeof streamed;
    }
    expect(streamed?.tool_calls, format).toMatchObject(expected);
  });
});
