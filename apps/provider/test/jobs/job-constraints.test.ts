/** Constraints of outputs: schemas, patterns and their errors. */
import type { JobContext } from '@inference/protocol';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import { answerTo, Bench, callOf, chat, messagesContext, weather } from './session-job-bench.js';

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());

let bench: Bench;
beforeEach(() => {
  bench = new Bench(constraints);
});

const jsonSchema = (schema: unknown) => ({ type: 'json_schema', json_schema: { name: 'x', schema } });
const strictly = (schema: unknown) => ({ type: 'json_schema', json_schema: { name: 'x', strict: true, schema } });
const unsure = [
  { name: 'weather', strict: true, input_schema: { type: 'object', properties: { a: { type: 'array', uniqueItems: true } } } },
];
const longName = { type: 'object', properties: { ['a'.repeat(40)]: { type: 'array', uniqueItems: true } } };

test.each<[string, Record<string, unknown>, string, Partial<JobContext>]>([
  [
    'a schema that no grammar can promise',
    { response_format: strictly({ properties: { tags: { uniqueItems: true } } }) },
    'response_format.json_schema.schema.properties.tags.uniqueItems',
    {},
  ],
  ['one whose place has a long name', { response_format: strictly(longName) }, 'response_format.json_schema.schema', {}],
  [
    'such a schema of a call that must be made',
    { max_tokens: 9, tools: unsure, tool_choice: { type: 'any' } },
    'tools.properties.a.uniqueItems',
    messagesContext,
  ],
  ['such a schema of a call that may be made', { max_tokens: 9, tools: unsure }, 'tools.properties.a.uniqueItems', messagesContext],
  [
    'a schema of a response',
    { messages: undefined, input: 'Hi', text: { format: { type: 'json_schema', name: 'x', strict: true, schema: { contains: {} } } } },
    'text.format.schema.contains',
    { endpoint: '/v1/responses' },
  ],
])('%s is rejected before the job is accepted', async (_what, request, param, context) => {
  expect(await bench.failureOf(chat(request), context)).toEqual({ code: 'unsupported', param });
  expect(bench.sent.some(({ type }) => type === 'job_accepted')).toBe(false);
  expect(bench.streams).toHaveLength(0);
});

const longItems = { type: 'object', properties: { ['a'.repeat(40)]: { type: 'array', minItems: 5000 } } };

test.each<[string, object, string, number]>([
  ['items', { type: 'array', minItems: 5000 }, 'response_format.json_schema.schema.minItems', 1000],
  ['items at a long place', longItems, 'response_format.json_schema.schema...minItems', 1000],
  ['characters', { type: 'string', minLength: 20_000 }, 'response_format.json_schema.schema.minLength', 10_000],
  ['repetitions', { type: 'string', pattern: '^a{2000}$' }, 'response_format.json_schema.schema.pattern', 1000],
  ['pattern', { type: 'string', pattern: 'a'.repeat(1001) }, 'response_format.json_schema.schema.pattern', 1000],
])('a schema that counts too many %s is rejected with the limit', async (_what, schema, param, limit) => {
  expect(await bench.failureOf(chat({ response_format: strictly(schema) }))).toEqual({ code: 'unsupported', param, limit });
});

test('unenforceable keywords are ignored in non-strict mode', async () => {
  const { body } = await answerTo(constraints, { response_format: jsonSchema({ type: 'array', uniqueItems: true }) }, ['[1,1]']);
  expect(body.choices[0].message.content).toBe('[1,1]');
});

test.each([
  [{ type: 'banana' }, 'response_format.json_schema.schema.type'],
  [{ type: 'string', const: 3 }, 'response_format'],
])('an invalid or unsatisfiable schema is an invalid request (%j)', async (schema, param) => {
  expect(await bench.failureOf(chat({ response_format: jsonSchema(schema) }))).toEqual({ code: 'invalid_request', param });
});

test('a constraint reaches the engine without thinking, and its output is never taken for a thought or a call', async () => {
  const content = `{"a":"<think>${callOf('Lima').join('').replaceAll('"', '\\"').replaceAll('\n', '')}"}`;
  const { body, stream } = await answerTo(constraints, { response_format: { type: 'json_object' }, tools: [weather] }, [...content]);
  expect(stream.request).toMatchObject({
    grammar: { rules: expect.any(Array) },
    prompt: { thinking: false, skipsThinking: true },
  });
  expect(body.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content } });
});

test.each([
  [{ tools: [weather] }, true],
  [{ tools: [weather], tool_choice: 'none' }, true],
  [{ tools: [weather], tool_choice: 'required' }, undefined],
  [{ response_format: { type: 'json_object' } }, undefined],
])('the engine knows whether the grammar permits free text (%j)', async (request, permitsFreeText) => {
  await bench.start(chat(request));
  expect(bench.stream.request.permitsFreeText).toBe(permitsFreeText);
});

test('a tool may still be called beside a response format', async () => {
  const { body } = await answerTo(constraints, { response_format: { type: 'json_object' }, tools: [weather] }, callOf('Lima'));
  expect(body.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null, tool_calls: [{}] } });
});

test('an output that violates its constraint is regenerated, without a trace', async () => {
  const body = chat({ stream: false, seed: 5, response_format: strictly({ type: 'integer', minimum: 3 }) });
  const { responses } = await bench.start(body, { stream: false });
  for (const text of ['1', 'no', '4']) await bench.finish([text]);
  const text = bench.text(responses);
  expect(JSON.parse(text)).toMatchObject({ choices: [{ message: { content: '4' } }], usage: { completion_tokens: 1 } });
  expect(bench.streams.map(({ request }) => request.sampling.seed)).toEqual([5, 6, 7]);
});

test.each([false, true])('an output that repeatedly violates its constraint fails (stream: %s)', async (stream) => {
  const { context } = await bench.start(chat({ stream, tools: [weather], tool_choice: 'required' }), { stream });
  for (let attempt = 0; attempt < (stream ? 1 : 3); attempt++) await bench.finish(['no call']);
  expect(bench.streams).toHaveLength(stream ? 1 : 3);
  expect(bench.sent).toContainEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'engine_failed' } });
});

test('log probabilities reach the answer with their text', async () => {
  const { responses } = await bench.start(chat({ stream: false, logprobs: true, top_logprobs: 1, stop: ['END'] }), { stream: false });
  const { generation, request } = bench.stream;
  expect(request.logprobs).toBe(1);
  generation.start({ job: 0, promptTokens: 11, startsInsideThinking: false });
  const entry = (token: string) => ({ token, logprob: -1, bytes: [...Buffer.from(token)], top_logprobs: [] });
  for (const text of ['<think>', 'hm', '</think>', 'one', ' twoEN', 'D']) {
    generation.push({ text, tokens: 1, logprobs: [entry(text)] });
  }
  await bench.settle();
  const text = bench.text(responses);
  const [choice] = JSON.parse(text).choices;
  expect(choice.message.content).toBe('one two');
  expect(choice.logprobs).toEqual({ content: [entry('one'), entry(' two')], refusal: null });
});

test('a grammar error of the engine names the field', async () => {
  const { context } = await bench.start(chat({ response_format: { type: 'json_object' } }));
  await bench.finish([], { job: 0, kind: 'invalid_request', field: 'grammar' });
  const failure = { code: 'invalid_request', param: 'response_format' };
  expect(bench.sent).toContainEqual({ type: 'job_failed', job_id: context.job_id, failure });
});
