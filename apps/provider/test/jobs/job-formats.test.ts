/** Tool calls, token counts and formats of answers. */
import { promptTokenBound } from '@inference/protocol';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { IMAGES } from '../../../../packages/formats/test/sample-images.js';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import { answerTo, Bench, callOf, chat, messagesContext, weather } from './session-job-bench.js';

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());

let bench: Bench;
beforeEach(() => {
  bench = new Bench(constraints);
});

test('tool calls get ids of their own', async () => {
  const { body, receipt, stream } = await answerTo(constraints, { tools: [weather] }, [...callOf('Lima'), '\n', ...callOf('Rome')]);
  const [choice] = body.choices;
  expect(choice).toMatchObject({
    finish_reason: 'tool_calls',
    message: { tool_calls: ['Lima', 'Rome'].map((city) => ({ function: { name: 'weather', arguments: `{"city": "${city}"}` } })) },
  });
  const ids = choice.message.tool_calls.map(({ id }: { id: string }) => id);
  expect(ids).toEqual([expect.stringMatching(/^call_[0-9a-f]{24}$/), expect.stringMatching(/^call_[0-9a-f]{24}$/)]);
  expect(new Set(ids).size).toBe(2);
  expect(receipt.finish_reason).toBe('tool_calls');
  expect(stream.request.prompt).toMatchObject({ tools: [{ type: 'function', function: { name: 'weather', description: '' } }] });
});

test('calls of the Messages format have its id format, one call at a time', async () => {
  const messagesTool = { name: 'weather', input_schema: weather.function.parameters };
  const { body } = await answerTo(constraints, { max_tokens: 50, tools: [messagesTool] }, callOf('Lima'), {
    ...messagesContext,
    max_tokens: 50,
  });
  expect(body.content).toEqual([
    { type: 'tool_use', id: expect.stringMatching(/^toolu_[0-9a-f]{24}$/), name: 'weather', input: { city: 'Lima' } },
  ]);
  const legacy = await answerTo(constraints, { functions: [weather.function] }, [...callOf('Lima'), ...callOf('Rome')]);
  expect(legacy.body.choices[0]).toMatchObject({
    finish_reason: 'function_call',
    message: { content: null, function_call: { name: 'weather', arguments: '{"city": "Lima"}' } },
  });
  expect(legacy.body.choices[0].message).not.toHaveProperty('tool_calls');
});

test('the model and its engine have a fingerprint', async () => {
  const { body } = await answerTo(constraints, { service_tier: 'auto' }, ['Hi']);
  expect(body).toMatchObject({ system_fingerprint: 'fp_0123456789ab', service_tier: 'default' });
});

test('without parallel calls the first one ends the answer', async () => {
  const texts = [...callOf('Lima'), ...callOf('Rome')];
  const { body, receipt, stream } = await answerTo(constraints, { tools: [weather], parallel_tool_calls: false }, texts);
  expect(body.choices[0].message.tool_calls).toHaveLength(1);
  expect(receipt).toMatchObject({ finish_reason: 'tool_calls', usage: { completion_tokens: 4 } });
  expect(stream.request.maxTokens).toBe(8192);
});

test.each([{}, { tools: [weather], tool_choice: 'none' }])(
  'what looks like a call is text where none may be made (%j)',
  async (request) => {
    const { body } = await answerTo(constraints, request, callOf('Lima'));
    expect(body.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: callOf('Lima').join('') } });
  },
);

test("calls and results of earlier turns reach the engine in the templates' format", async () => {
  const calls = [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Lima"}' } }];
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: calls },
    { role: 'tool', tool_call_id: 'c1', content: '20' },
  ];
  const { stream } = await answerTo(constraints, { messages, tools: [weather], reasoning_effort: 'none' }, ['Warm.']);
  expect(stream.request.prompt).toMatchObject({
    thinking: false,
    messages: [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: { city: 'Lima' } } }],
      },
      { role: 'tool', content: '20', tool_call_id: 'c1', name: 'weather' },
    ],
  });
});

describe('images', () => {
  const png = IMAGES['image/png'];
  const part = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } };
  const body = chat({ stream: false, messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, part] }] });

  test('reach the engine as files, and count beside the text', async () => {
    bench.maxImageTokens = 700;
    await bench.start(body, { stream: false });
    const { request, generation } = bench.stream;
    const image = { type: 'image', data: Buffer.from(png, 'base64'), field: 'messages[0].content[1]' };
    expect(request.prompt).toMatchObject({ messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, image] }] });
    generation.start({ job: generation.job, promptTokens: 1_000_000, startsInsideThinking: false });
    generation.end({ job: generation.job, kind: 'finished', reason: 'stop', completionTokens: 0 });
    await bench.settle();
    const { usage } = bench.receipt ?? {};
    expect(usage?.prompt_tokens).toBe(promptTokenBound(body.length - png.length, 700));
  });

  test('that cannot be decoded name their part', async () => {
    bench.maxImageTokens = 700;
    const { context } = await bench.start(body, { stream: false });
    const { generation } = bench.stream;
    generation.end({ job: generation.job, kind: 'invalid_image', path: 'messages[0].content[1]' });
    await bench.settle();
    const failure = { code: 'invalid_image', param: 'messages[0].content[1]' };
    expect(bench.sent.filter(({ type }) => type === 'job_failed')).toEqual([{ type: 'job_failed', job_id: context.job_id, failure }]);
  });

  test('are refused by a model that takes none', async () => {
    expect(await bench.failureOf(body, { stream: false })).toEqual({ code: 'unsupported', param: 'messages[0].content[1]' });
    expect(bench.streams).toHaveLength(0);
  });
});

const user = [{ role: 'user', content: 'Hi' }];

test('a token count generates no token', async () => {
  const context = { endpoint: '/v1/messages/count_tokens', max_tokens: 1, overrides: {}, response_id: 'count_1' } as const;
  const { body, receipt, stream } = await answerTo(constraints, { stream: undefined, messages: user }, [], context);
  expect(stream.request.maxTokens).toBe(0);
  expect(body).toEqual({ input_tokens: 11 });
  expect(receipt).toMatchObject({ finish_reason: 'stop', usage: { prompt_tokens: 11, completion_tokens: 0 }, hidden_tokens: 0 });
});

test('a legacy completion is a text prompt, and its errors name the field', async () => {
  const context = { endpoint: '/v1/completions', response_id: 'cmpl-1' } as const;
  const { body, stream } = await answerTo(constraints, { messages: undefined, prompt: 'Once' }, [' upon'], context);
  expect(stream.request.prompt).toEqual({ type: 'text', text: 'Once' });
  expect(body.choices[0].text).toBe(' upon');
});

test('a message names the stop sequence that ended it', async () => {
  const { body, stream } = await answerTo(
    constraints,
    { max_tokens: 9, stop_sequences: ['END'], messages: user, top_k: 3 },
    ['one EN', 'D'],
    messagesContext,
  );
  expect(body).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'END', content: [{ text: 'one ' }] });
  expect(stream.request.sampling.topK).toBe(3);
});

test("an idle stream of messages sends pings, after the prompt's count", async () => {
  bench = new Bench(constraints, 2, { pingAfterMs: 20 });
  const { responses } = await bench.start(chat({ max_tokens: 9 }), messagesContext);
  const stream = bench.stream;
  stream.generation.start({ job: 0, promptTokens: 11, startsInsideThinking: false });
  await new Promise((resolve) => setTimeout(resolve, 100));
  const early = bench.frames.length;
  await bench.finish(['Hi']);
  const text = bench.text(responses);
  expect(early).toBeGreaterThan(0);
  expect(text).toMatch(/^event: message_start\n.*"input_tokens":11/);
  expect(text.split('event: ping').length).toBeGreaterThan(2);
});

test('progress on a prompt is reported, a hang is not', async () => {
  bench = new Bench(constraints, 2, { progressEveryMs: 20 });
  await bench.start(chat());
  const { generation } = bench.stream;
  const progress = () => bench.sent.filter(({ type }) => type === 'job_progress').length;
  const working = setInterval(() => generation.engineWorked(), 5);
  await bench.until(() => progress() > 2);
  clearInterval(working);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const before = progress();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(progress()).toBe(before);
  await bench.finish(['Hi']);
  expect(bench.sent.at(-1)?.type).not.toBe('job_progress');
});
