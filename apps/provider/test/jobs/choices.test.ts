/** Jobs for several choices (`n`): one generation each, one bill. */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import { Bench, callOf, chat, weather } from './session-job-bench.js';

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());

let bench: Bench;
beforeEach(() => {
  bench = new Bench(constraints);
});

const context = { max_tokens: 30, overrides: {} };
const three = (changes: Record<string, unknown> = {}) => chat({ n: 3, max_tokens: 10, seed: 5, ...changes });

test('each choice is generated with its own seed and limit, and the prompt is billed once', async () => {
  const { responses } = await bench.start(three({ stream: false }), { ...context, stream: false });
  for (const texts of [['a'], ['<think>', 'hm', '</think>', 'b'], ['c', 'd']]) await bench.finish(texts);
  expect(bench.streams.map(({ request: { maxTokens, sampling } }) => [maxTokens, sampling.seed])).toEqual([
    [10, 5],
    [10, 6],
    [10, 7],
  ]);
  const body = JSON.parse(bench.text(responses));
  expect(body.choices.map(({ index, message }: { index: number; message: { content: string } }) => [index, message.content])).toEqual([
    [0, 'a'],
    [1, 'b'],
    [2, 'cd'],
  ]);
  expect(body.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
  expect(bench.receipt).toMatchObject({
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    hidden_tokens: 3,
    finish_reason: 'stop',
  });
});

test('a seed beyond the precision of numbers still differs for each choice', async () => {
  await bench.start(three({ stream: false, seed: 2 ** 62 }), { ...context, stream: false });
  for (let choice = 0; choice < 3; choice++) await bench.finish(['a']);
  expect(bench.streams.map(({ request }) => request.sampling.seed)).toEqual([2 ** 62, 1, 2]);
});

test('a choice that its limit cut decides the finish reason of the receipt', async () => {
  const { responses } = await bench.start(three(), context);
  await bench.finish(['a']);
  await bench.finish(['b'], { job: bench.stream.generation.job, kind: 'finished', reason: 'length', completionTokens: 1 });
  await bench.finish(['c']);
  expect(
    [...bench.text(responses).matchAll(/"index":(\d),.*"finish_reason":"(\w+)"/g)].map(([, index, reason]) => [index, reason]),
  ).toEqual([
    ['0', 'stop'],
    ['1', 'length'],
    ['2', 'stop'],
  ]);
  expect(bench.receipt).toMatchObject({ finish_reason: 'length', usage: { completion_tokens: 3 } });
});

test('calls of different choices have different ids', async () => {
  const { responses } = await bench.start(three({ stream: false, tools: [weather] }), { ...context, stream: false });
  for (let choice = 0; choice < 3; choice++) await bench.finish(callOf('Rome'));
  const { choices } = JSON.parse(bench.text(responses));
  const ids = choices.map(({ message }: { message: { tool_calls: { id: string }[] } }) => message.tool_calls[0]?.id);
  expect(new Set(ids).size).toBe(3);
});

test('a client that leaves during the second choice pays for the written text, and no third choice begins', async () => {
  const { context: sent } = await bench.start(three(), context);
  await bench.finish(['a', 'b']);
  await bench.write('c');
  await bench.cancel(sent);
  expect(bench.streams).toHaveLength(2);
  expect(bench.receipt).toMatchObject({ finish_reason: 'cancelled', usage: { prompt_tokens: 11, completion_tokens: 3 } });
});

test('a failure of a later choice fails the job', async () => {
  const { context: sent } = await bench.start(three({ stream: false }), { ...context, stream: false });
  await bench.finish(['a']);
  await bench.finish([], { job: bench.stream.generation.job, kind: 'engine_failed', message: 'x' });
  expect(bench.sent).toContainEqual({ type: 'job_failed', job_id: sent.job_id, failure: { code: 'engine_failed' } });
  expect(bench.released).toBe(1);
});
