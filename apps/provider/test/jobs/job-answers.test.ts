/** Answers of jobs: acceptance, sealing, signatures, credit and cancels. */
import {
  agreesWithReceipt,
  decodeFrame,
  type Frame,
  MAX_PLAIN_RESPONSE_BYTES,
  promptTokenBound,
  UsageReader,
  visibleTokenBound,
} from '@inference/protocol';
import { type ResponseOpener, sha256Hex } from '@inference/protocol/crypto';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { Ended } from '../../src/engine/messages.js';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import { Bench, chat } from './session-job-bench.js';

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());

let bench: Bench;
beforeEach(() => {
  bench = new Bench(constraints);
});

test('an answer is accepted, sealed, hashed and signed', async () => {
  const { context, responses } = await bench.start(chat(), { client_nonce: 'A'.repeat(43) });
  expect(bench.sent[0]).toEqual({ type: 'job_accepted', job_id: context.job_id });
  expect(bench.streams[0]?.request).toMatchObject({
    maxTokens: 8192,
    prompt: {
      type: 'chat',
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [],
      continuesLast: false,
      thinking: null,
      skipsThinking: false,
    },
    sampling: { temperature: 1, seed: null },
  });
  await bench.finish(['<think>', 'hm', '</think>', 'Good', ' day']);
  const text = bench.text(responses);
  expect(responses.finished).toBe(true);
  const completed = bench.sent.at(-1);
  if (completed?.type !== 'job_completed') throw new Error('not completed');
  expect(completed.response_sha256).toBe(sha256Hex(Buffer.from(text)));
  expect(bench.receipt).toMatchObject({
    job_id: context.job_id,
    client_nonce: 'A'.repeat(43),
    overrides: { max_tokens: 8192 },
    usage: { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 },
    hidden_tokens: 3,
    finish_reason: 'stop',
  });
  expect(text).not.toContain('hm');
});

test('an answer for which no unstreamed response has room is refused', async () => {
  const { context } = await bench.start(chat({ stream: false }), { stream: false });
  await bench.finish(['"'.repeat(MAX_PLAIN_RESPONSE_BYTES / 2)]);
  const failure = { code: 'unsupported', param: 'max_tokens' };
  expect(bench.sent.at(-1)).toEqual({ type: 'job_failed', job_id: context.job_id, failure });
  expect(bench.frames).toHaveLength(0);
});

test('a stop sequence ends the stream and cancels the rest', async () => {
  const { responses } = await bench.start(chat({ stop: ['END'] }));
  const { commands } = bench.stream;
  await bench.write('one ', 'EN', 'D two', ' three');
  expect(commands).toContain('cancel');
  const text = bench.text(responses);
  expect(text).toContain('"one ');
  expect(text).not.toMatch(/two|three/);
  expect(bench.receipt?.usage.completion_tokens).toBe(3);
});

test.each<[Ended, unknown]>([
  [
    { job: 0, kind: 'context_length_exceeded', limit: 10, actual: 20 },
    { code: 'context_length_exceeded', limit: 10, actual: 20 },
  ],
  [
    { job: 0, kind: 'invalid_request', field: 'prompt' },
    { code: 'invalid_request', param: 'messages' },
  ],
  [{ job: 0, kind: 'engine_failed', message: 'x' }, { code: 'engine_failed' }],
])('an engine that ends with %o is reported by its code', async (ended, failure) => {
  const { context } = await bench.start(chat());
  await bench.finish([], ended);
  expect(bench.sent).toContainEqual({ type: 'job_failed', job_id: context.job_id, failure });
});

test('an answer that cannot be signed fails', async () => {
  bench.signingFails = true;
  const { context } = await bench.start(chat());
  await bench.finish(['Hi']);
  expect(bench.sent).toContainEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'signing_failed' } });
});

test('without credit nothing is sent, the engine is paused, and no token is lost', async () => {
  const { context, responses } = await bench.start(chat(), {}, { credit: 10 });
  const { generation, commands } = bench.stream;
  generation.start({ job: 0, promptTokens: 1, startsInsideThinking: false });
  const words = Array.from({ length: 3000 }, (_, index) => `word${index} ${'x'.repeat(100)} `);
  let written = 0;
  let max = 0;
  let received = '';
  let opened = 0;
  for (let round = 0; generation.unread > 0 || written < words.length || bench.jobs.active > 0; round++) {
    if (round > 5000) throw new Error('the job did not end');
    // A scripted engine.
    const paused = commands.filter((command) => command !== 'cancel').at(-1) === 'pause';
    if (!paused) for (let i = 0; i < 50 && written < words.length; i++) generation.push({ text: words[written++] as string, tokens: 1 });
    if (written === words.length) generation.end({ job: 0, kind: 'finished', reason: 'stop', completionTokens: words.length });
    max = Math.max(max, generation.unread);
    bench.jobs.handle({ type: 'credit', job_id: context.job_id, bytes: 3000 });
    await bench.settle();
    for (; opened < bench.frames.length; opened++) {
      received += Buffer.from(responses.open(decodeFrame(bench.frames[opened] as Uint8Array) as Frame)).toString();
    }
    expect(received.length).toBeLessThanOrEqual(10 + 3000 * (round + 1));
  }
  expect(max).toBeLessThan(400);
  expect(commands).toContain('pause');
  expect(commands).toContain('resume');
  const content = [...received.matchAll(/"content":"([^"]*)"/g)].map((match) => match[1]).join('');
  expect(content).toBe(words.join(''));
});

test('text without credit is sent when credit arrives, with or without further text', async () => {
  const { context, responses } = await bench.start(chat(), {}, { credit: 5 });
  const { generation } = bench.stream;
  await bench.write('Hello');
  expect(bench.frames).toHaveLength(1);
  bench.jobs.handle({ type: 'credit', job_id: context.job_id, bytes: 10_000 });
  await bench.settle();
  const text = bench.text(responses);
  expect(text).toContain('"Hello"');
  generation.cancel();
});

/** Messages sent by the bench, opened, and the receipt if any. */
function outcomeOf(bench: Bench, responses: ResponseOpener) {
  const failed = bench.sent.find(({ type }) => type === 'job_failed');
  return {
    text: bench.text(responses),
    receipt: bench.receipt,
    finished: responses.finished,
    failure: failed?.type === 'job_failed' ? failed.failure : null,
  };
}

test.each([
  ['/v1/chat/completions', false],
  ['/v1/chat/completions', true],
  ['/v1/completions', false],
  ['/v1/completions', true],
  ['/v1/responses', false],
  ['/v1/responses', true],
  ['/v1/messages', false],
  ['/v1/messages', true],
] as const)("on %s (stream: %s) reports the receipt's counts, within the byte bounds", async (endpoint, stream) => {
  const asked = endpoint === '/v1/completions' ? { prompt: 'Hi' } : endpoint === '/v1/responses' ? { input: 'Hi' } : {};
  const limit = endpoint === '/v1/responses' ? { max_output_tokens: 9000 } : { max_tokens: 9000 };
  const usage = endpoint.endsWith('completions') && stream ? { stream_options: { include_usage: true } } : {};
  const messages = 'prompt' in asked || 'input' in asked ? { messages: undefined } : {};
  const body = chat({ stream, ...asked, ...limit, ...usage, ...messages });
  const { responses } = await bench.start(body, { endpoint, stream, max_tokens: 9000, overrides: {} });
  const { generation } = bench.stream;
  generation.start({ job: 0, promptTokens: 11_000, cachedTokens: 10_000, startsInsideThinking: false });
  generation.push({ text: '<think>hm</think>', tokens: 30 });
  generation.push({ text: 'Hello', tokens: 1 });
  // Tokens without text, as broken models write endlessly.
  generation.push({ text: '', tokens: 8000 });
  generation.end({ job: 0, kind: 'finished', reason: 'length', completionTokens: 8031 });
  await bench.settle();
  const { text, receipt } = outcomeOf(bench, responses);
  const reader = new UsageReader(endpoint, stream);
  reader.push(Buffer.from(text));
  const report = reader.end();
  expect(report.length).toBeGreaterThan(0);
  expect(agreesWithReceipt(report, receipt)).toBe(true);
  expect(receipt.hidden_tokens).toBe(30);
  expect(receipt.usage.prompt_tokens).toBe(promptTokenBound(body.length));
  expect(receipt.usage.total_tokens).toBe(receipt.usage.prompt_tokens + receipt.usage.completion_tokens);
  expect(receipt.usage.completion_tokens - 30).toBeLessThanOrEqual(visibleTokenBound(Buffer.byteLength(text)));
});

test.each([
  ['/v1/chat/completions', {}, '"prompt_tokens_details":{"cached_tokens":7}'],
  [
    '/v1/messages',
    { cache_control: { type: 'ephemeral' } },
    '"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":7',
  ],
  ['/v1/messages', {}, '"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0'],
] as const)(
  'on %s with %j says in answer and receipt what was reused of the scope that the context names',
  async (endpoint, members, said) => {
    const body = chat({ stream: false, max_tokens: 20, ...members });
    const cacheScope = 'ab'.repeat(16);
    const changes = { endpoint, stream: false, max_tokens: 20, overrides: {}, cache_scope: cacheScope };
    const { responses } = await bench.start(body, changes);
    const { generation, request } = bench.stream;
    expect(request.cacheScope).toBe(cacheScope);
    generation.start({ job: 0, promptTokens: 11, cachedTokens: 7, startsInsideThinking: false });
    generation.push({ text: 'Hi', tokens: 1 });
    generation.end({ job: 0, kind: 'finished', reason: 'stop', completionTokens: 1 });
    await bench.settle();
    const { text, receipt } = outcomeOf(bench, responses);
    expect(receipt.usage).toEqual({ prompt_tokens: 11, completion_tokens: 1, total_tokens: 12, cached_tokens: 7 });
    expect(text).toContain(said);
  },
);

describe('a cancelled job', () => {
  async function started(request: Record<string, unknown>, options: { credit?: number; closeTimeoutMs?: number } = {}) {
    const bench = new Bench(constraints, 2, options);
    const body = chat(request);
    const { context, responses } = await bench.start(
      body,
      { stream: request.stream !== false },
      options.credit === undefined ? {} : { credit: options.credit },
    );
    const { generation, commands } = bench.stream;
    const cancel = () => bench.cancel(context);
    return { bench, context, responses, generation, commands, cancel };
  }

  test('that has streamed stops the engine, ends and is signed', async () => {
    const { bench, responses, commands, cancel } = await started({});
    await bench.write('<think>', 'hm', '</think>', 'Good', ' day');
    await cancel();
    expect(commands).toContain('cancel');
    const { text, receipt, finished, failure } = outcomeOf(bench, responses);
    expect([finished, failure]).toEqual([true, null]);
    expect(text).toMatch(/"content":" day".*\n\n$/);
    expect(text).not.toContain('"finish_reason":"');
    expect(receipt).toMatchObject({
      finish_reason: 'cancelled',
      usage: { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 },
      hidden_tokens: 3,
      response_sha256: sha256Hex(Buffer.from(text)),
    });
    expect(bench.jobs.active).toBe(0);
  });

  test('does not count unsent tokens', async () => {
    const { bench, responses, generation, cancel } = await started({});
    await bench.write('seen');
    const cancelled = cancel();
    generation.push({ text: ' unseen', tokens: 1 });
    await cancelled;
    const { text, receipt } = outcomeOf(bench, responses);
    expect(text).not.toContain('unseen');
    expect(receipt.usage.completion_tokens).toBe(1);
  });

  test.each<[string, { stream?: boolean }]>([
    ['a plain answer', { stream: false }],
    ['a stream that has written nothing', {}],
  ])('that is %s fails and signs nothing', async (_what, request) => {
    const { bench, responses, cancel } = await started(request);
    if (request.stream === false) {
      await bench.write('Hello');
    }
    await cancel();
    expect(outcomeOf(bench, responses)).toEqual({ text: '', receipt: null, finished: false, failure: { code: 'cancelled' } });
  });

  test('that was out of credit sends its text once credit arrives', async () => {
    const { bench, context, responses, cancel } = await started({}, { credit: 10 });
    await bench.write('Hello');
    bench.jobs.handle({ type: 'credit', job_id: context.job_id, bytes: 1 << 18 });
    await cancel();
    const { text, receipt, finished } = outcomeOf(bench, responses);
    expect(text).toContain('"Hello"');
    expect([finished, receipt.finish_reason]).toEqual([true, 'cancelled']);
  });

  test('that never gets credit is cancelled after a timeout', async () => {
    const { bench, responses, cancel } = await started({}, { credit: 10, closeTimeoutMs: 500 });
    await bench.write('Hello');
    await cancel();
    expect(bench.jobs.active).toBe(1);
    await expect.poll(() => bench.jobs.active).toBe(0);
    expect(outcomeOf(bench, responses)).toMatchObject({ receipt: null, finished: false, failure: { code: 'cancelled' } });
  });

  test('that was already complete is signed as complete', async () => {
    const { bench, context, responses, generation, cancel } = await started({}, { credit: 10 });
    generation.start({ job: 0, promptTokens: 1, startsInsideThinking: false });
    generation.push({ text: 'Hello', tokens: 1 });
    generation.end({ job: 0, kind: 'finished', reason: 'stop', completionTokens: 1 });
    await bench.settle();
    await cancel();
    bench.jobs.handle({ type: 'credit', job_id: context.job_id, bytes: 1 << 18 });
    await bench.settle();
    const { text, receipt } = outcomeOf(bench, responses);
    expect(text).toContain('"finish_reason":"stop"');
    expect(receipt.finish_reason).toBe('stop');
  });
});

test('a socket that does not drain holds frames back, and a cancel still gets through', async () => {
  bench = new Bench(constraints, 2, { closeTimeoutMs: 50 });
  bench.unsent = [];
  const { context } = await bench.start(chat(), {}, { credit: 1 << 26 });
  const { generation, commands } = bench.stream;
  generation.start({ job: 0, promptTokens: 1, startsInsideThinking: false });
  for (let i = 0; i < 400; i++) {
    if (commands.at(-1) !== 'pause') generation.push({ text: 'x'.repeat(4000), tokens: 1 });
    await bench.settle();
  }
  const bytes = bench.frames.reduce((sum, frame) => sum + frame.length, 0);
  expect(bytes).toBeLessThan(128 * 1024);
  expect(commands).toContain('pause');
  bench.jobs.handle({ type: 'cancel', job_id: context.job_id });
  await expect.poll(() => bench.jobs.active).toBe(0);
  expect(bench.sent).toContainEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'cancelled' } });
});
