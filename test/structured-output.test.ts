/**
 * Structured output and tools through a whole network with a random-weight model: in every format, the answer fits the requested
 * schema.
 */
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import Schema from 'typebox/schema';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { runProgram } from './support/program.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const directory = temporaryDirectory('inference-structured');
let network: DemoNetwork;
let dispose: () => Promise<void>;
let anthropic: Anthropic;

beforeAll(async () => {
  const modelPath = join(directory, 'random.gguf');
  await runProgram('scripts/make-model.ts', ['--out', modelPath, '--seed', '2']);
  ({ network, dispose } = await startDemoNetwork({ modelPath }));
  anthropic = new Anthropic({ baseURL: network.baseUrl, apiKey: network.apiKey, maxRetries: 0 });
});
afterAll(() => dispose?.());

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 2, maxLength: 12 },
    age: { type: 'integer', minimum: 0, maximum: 120 },
    code: { type: 'string', pattern: '^[A-Z]{3}-[0-9]{1,4}$' },
    when: { type: ['string', 'null'], format: 'date-time' },
    tags: { type: 'array', items: { enum: ['a', 'b', 'c'] }, uniqueItems: true, minItems: 1 },
    kind: { oneOf: [{ const: 'x' }, { type: 'number', multipleOf: 0.5, exclusiveMinimum: 0 }] },
    child: { anyOf: [{ $ref: '#' }, { type: 'null' }] },
  },
  required: ['name', 'age', 'code', 'when', 'tags', 'kind', 'child'],
  additionalProperties: false,
} as const;
const fits = (json: string) => Schema.Check(schema, JSON.parse(json));

const content = 'Describe a person.';
const chat = { messages: [{ role: 'user' as const, content }], max_tokens: 180 };
const describeTool = { name: 'describe', description: 'Describes a person', parameters: schema, strict: true };
const chatTools = [{ type: 'function' as const, function: describeTool }];
const asked = (name: string, value: object = schema) => ({
  type: 'json_schema' as const,
  json_schema: { name, schema: value as Record<string, unknown>, strict: true },
});

describe('chat completions', () => {
  it('fit a schema, streamed or not', async () => {
    const body = { model: network.model, ...chat, response_format: asked('person') };
    const plain = await network.openai.chat.completions.create(body);
    expect(plain.choices[0]?.finish_reason).toBe('stop');
    expect(fits(plain.choices[0]?.message.content ?? ''), plain.choices[0]?.message.content ?? '').toBe(true);
    const streamed = await network.openai.chat.completions.stream({ ...body, stream: true }).finalChatCompletion();
    expect(fits(streamed.choices[0]?.message.content ?? '')).toBe(true);
  });

  it('are whole objects in JSON mode, with whatever room they have', async () => {
    for (const max_tokens of [12, 60]) {
      const { choices, usage } = await network.openai.chat.completions.create({
        model: network.model,
        ...chat,
        max_tokens,
        response_format: { type: 'json_object' },
      });
      expect(JSON.parse(choices[0]?.message.content ?? '')).toBeTypeOf('object');
      expect(choices[0]?.finish_reason).toBe('stop');
      expect(usage?.completion_tokens).toBeLessThanOrEqual(max_tokens);
    }
  });

  it.each<[string, object]>([
    ['required', { tool_choice: 'required', parallel_tool_calls: false }],
    ['named', { tool_choice: { type: 'function', function: { name: 'describe' } } }],
  ])('call a tool that is %s with arguments that fit', async (_what, choice) => {
    const body = { model: network.model, ...chat, tools: chatTools, ...choice } as OpenAI.ChatCompletionCreateParamsNonStreaming;
    const { choices } = await network.openai.chat.completions.create(body);
    expect(choices[0]?.finish_reason).toBe('tool_calls');
    expect(choices[0]?.message.content).toBeNull();
    const calls = choices[0]?.message.tool_calls ?? [];
    expect(calls).toHaveLength(1);
    for (const call of calls) expect(call.type === 'function' && fits(call.function.arguments)).toBe(true);
  });

  it('answer or call where both are possible, and never anything else', async () => {
    for (let round = 0; round < 2; round++) {
      const { choices } = await network.openai.chat.completions.create({
        model: network.model,
        ...chat,
        seed: round,
        tools: chatTools,
        response_format: asked('person'),
      });
      const { content: text, tool_calls: calls = [] } = choices[0]?.message ?? {};
      const jsons = calls.length === 0 ? [text ?? ''] : calls.map((call) => (call.type === 'function' ? call.function.arguments : ''));
      for (const json of jsons) expect(fits(json), json).toBe(true);
    }
  });

  it.each<[string, object, RegExp]>([
    ['response_format', { response_format: { type: 'json_object', schema } }, /^\{/],
    ['guided_json', { guided_json: schema }, /^\{/],
    ['structured_outputs', { structured_outputs: { json: schema } }, /^\{/],
    ['format', { format: schema }, /^\{/],
    ['guided_choice', { guided_choice: ['positive', 'negative'] }, /^(positive|negative)$/],
    ['guided_regex', { guided_regex: '[A-Z]{3}-\\d{1,4}' }, /^[A-Z]{3}-\d{1,4}$/],
  ])('have the form that other servers are asked for as %s', async (_what, form, expected) => {
    const whole = await network.post('/v1/chat/completions', { model: network.model, ...chat, ...form });
    const { choices } = (await whole.json()) as OpenAI.ChatCompletion;
    const text = choices[0]?.message.content ?? '';
    expect(text).toMatch(expected);
    if (text.startsWith('{')) expect(fits(text), text).toBe(true);
  });

  it('say why and where the limit is when a schema counts too much', async () => {
    const response_format = asked('many', { type: 'array', items: { type: 'integer' }, minItems: 5000 });
    const refused = await network.post('/v1/chat/completions', { model: network.model, ...chat, response_format });
    const { error } = (await refused.json()) as { error: { param: string; message: string } };
    expect([refused.status, error.param]).toEqual([400, 'response_format.json_schema.schema.minItems']);
    expect(error.message).toMatch(/minItems is limited to 1000 here, because enforcing the schema takes memory for each item/);
  });

  it('that ask for what cannot be promised are refused by the place in the schema', async () => {
    const impossible = { type: 'object', properties: { tags: { type: 'array', uniqueItems: true } } };
    const refused = await network.post('/v1/chat/completions', {
      model: network.model,
      ...chat,
      stream: true,
      response_format: asked('tags', impossible),
    });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: { code: 'unsupported_parameter', param: 'response_format.json_schema.schema.properties.tags.uniqueItems' },
    });
  });

  it('carry log probabilities that make up the content, streamed or not', async () => {
    const body = { model: network.model, ...chat, max_tokens: 20, temperature: 0, seed: 1, logprobs: true, top_logprobs: 2 };
    const plain = await network.openai.chat.completions.create(body);
    const entries = plain.choices[0]?.logprobs?.content ?? [];
    expect(entries.map(({ token }) => token).join('')).toBe(plain.choices[0]?.message.content);
    for (const { logprob, top_logprobs } of entries) {
      expect(top_logprobs).toHaveLength(2);
      expect(top_logprobs[0]?.logprob).toBeCloseTo(logprob, 4);
    }
    const streamed: OpenAI.ChatCompletionTokenLogprob[] = [];
    for await (const chunk of await network.openai.chat.completions.create({ ...body, stream: true })) {
      streamed.push(...(chunk.choices[0]?.logprobs?.content ?? []));
    }
    expect(streamed).toEqual(entries);
  });
});

describe('responses', () => {
  it('fit a schema, streamed or not', async () => {
    const body = {
      model: network.model,
      input: content,
      max_output_tokens: 180,
      text: { format: { type: 'json_schema' as const, name: 'person', strict: true, schema } },
    };
    const plain = await network.openai.responses.create(body);
    expect(plain.status).toBe('completed');
    expect(fits(plain.output_text)).toBe(true);
    const streamed = await network.openai.responses.stream(body).finalResponse();
    expect(fits(streamed.output_text)).toBe(true);
  });

  it.each([['required' as const], [{ type: 'function' as const, name: 'describe' }]])(
    'call a tool with arguments that fit (%j)',
    async (tool_choice) => {
      const { output } = await network.openai.responses.create({
        model: network.model,
        input: content,
        max_output_tokens: 200,
        tools: [{ type: 'function', ...describeTool }],
        tool_choice,
      });
      const calls = output.filter((item) => item.type === 'function_call');
      expect(calls.length).toBeGreaterThan(0);
      for (const call of calls) expect(fits(call.arguments)).toBe(true);
    },
  );

  it('carry log probabilities when they are included', async () => {
    const { output, output_text } = await network.openai.responses.create({
      model: network.model,
      input: content,
      max_output_tokens: 10,
      // At other temperatures, a random-weight model sometimes returns an empty answer.
      temperature: 0,
      include: ['message.output_text.logprobs'],
      top_logprobs: 1,
    });
    const [message] = output;
    const part = message?.type === 'message' ? message.content[0] : undefined;
    const logprobs = part?.type === 'output_text' ? (part.logprobs ?? []) : [];
    expect(logprobs.map(({ token }) => token).join('')).toBe(output_text);
    expect(logprobs.length).toBeGreaterThan(0);
  });
});

describe('messages', () => {
  const body = () => ({ model: network.model, max_tokens: 200, messages: chat.messages });
  const tools = [{ name: 'describe', input_schema: schema as unknown as Anthropic.Tool.InputSchema, strict: true }];

  it('fit a schema, streamed or not', async () => {
    const asks = { ...body(), output_config: { format: { type: 'json_schema' as const, schema } } };
    const plain = await network.post('/v1/messages', asks);
    const { content: blocks } = (await plain.json()) as Anthropic.Message;
    expect(fits(blocks[0]?.type === 'text' ? blocks[0].text : '')).toBe(true);
    const streamed = await (await network.post('/v1/messages', { ...asks, stream: true })).text();
    const deltas = streamed.matchAll(/"type":"text_delta","text":("(?:[^"\\]|\\.)*")/g);
    expect(fits([...deltas].map(([, text]) => JSON.parse(text as string)).join(''))).toBe(true);
  });

  it.each([
    { type: 'any' as const, disable_parallel_tool_use: true },
    { type: 'tool' as const, name: 'describe' },
  ])('call a tool with input that fits (%j)', async (tool_choice) => {
    const plain = await anthropic.messages.create({ ...body(), tools, tool_choice });
    const streamed = await anthropic.messages.stream({ ...body(), tools, tool_choice }).finalMessage();
    for (const message of [plain, streamed]) {
      expect(message.stop_reason).toBe('tool_use');
      expect(message.content).toHaveLength(1);
      const [block] = message.content;
      expect(block?.type === 'tool_use' && Schema.Check(schema, block.input)).toBe(true);
    }
  });
});
