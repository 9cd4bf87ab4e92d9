/** Jobs with real sealing and a scripted engine: refusals, and contents of answers. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  agreesWithReceipt,
  CLOCK_TOLERANCE_MS,
  decodeFrame,
  type Frame,
  ImagePartsReader,
  type JobContext,
  type JobId,
  type KeyId,
  type ProviderId,
  type ProviderMessage,
  promptTokenBound,
  toBase64,
  UsageReader,
  visibleTokenBound,
} from '@inference/protocol';
import { encapsulate, generateSealingKeyPair, keyIdOf, type ResponseOpener, sealRequest, sha256Hex } from '@inference/protocol/crypto';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { Embedding } from '../../src/engine/embedding.js';
import { Generation, type StreamCommand } from '../../src/engine/generation.js';
import type { EmbeddingRequest, Ended, GenerationRequest } from '../../src/engine/messages.js';
import { ImageJob } from '../../src/imaging/image-job.js';
import type { ImageRequest } from '../../src/imaging/messages.js';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import type { ModelLease } from '../../src/jobs/model-lease.js';
import type { SealingKey } from '../../src/jobs/sealing-keys.js';
import { SessionJobs } from '../../src/jobs/session-jobs.js';
import type { EmbeddingFacts } from '../../src/models/embedding-facts.js';

const providerId = '0123456789abcdef0123456789abcdef' as ProviderId;
const now = 1_800_000_000_000;

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());

function sealingKey(): SealingKey {
  const pair = generateSealingKeyPair();
  return { id: keyIdOf(pair.publicKey), pair, seen: new Set() };
}

interface ScriptedStream {
  readonly generation: Generation;
  readonly request: GenerationRequest;
  readonly commands: StreamCommand[];
}

class Bench {
  readonly key = sealingKey();
  readonly oldKey = sealingKey();
  readonly sent: ProviderMessage[] = [];
  readonly frames: Uint8Array[] = [];
  readonly streams: ScriptedStream[] = [];
  readonly embeddings: { readonly embedding: Embedding; readonly request: EmbeddingRequest }[] = [];
  /** Null: the model writes text. */
  embedding: EmbeddingFacts | null = null;
  readonly drawings: { readonly drawing: ImageJob; readonly request: ImageRequest; readonly commands: string[] }[] = [];
  /** Null: the model makes no images. */
  image: ModelLease['image'] = null;
  /** Resolves when the model is in memory. */
  loaded: Promise<unknown> = Promise.resolve();
  leased = 0;
  released = 0;
  signingFails = false;
  away: 'away' | 'busy' | null = null;
  /** Frames whose bytes have not been written. */
  unsent: (() => void)[] | null = null;
  /** Constraints being compiled or checked. */
  readonly #thoughts = new Set<Promise<unknown>>();
  readonly jobs: SessionJobs;

  constructor(slots = 2, { pingAfterMs = 10_000, closeTimeoutMs = 5000, progressEveryMs = 15_000 } = {}) {
    const keys = new Map<KeyId, SealingKey>([this.key, this.oldKey].map((key) => [key.id, key]));
    this.jobs = new SessionJobs({
      providerId,
      keys: { find: (id) => keys.get(id) ?? null },
      modelIds: () => new Set(['pico']),
      slots,
      away: () => this.away,
      now: () => now,
      pingAfterMs,
      closeTimeoutMs,
      progressEveryMs,
      lease: async (_model, signal) => {
        this.leased++;
        await Promise.race([this.loaded, once(signal, 'abort')]);
        signal.throwIfAborted();
        return this.lease();
      },
      constraints: {
        compile: async (...about) => {
          const constraint = await this.#thought(constraints.compile(...about));
          return constraint === null ? null : { ...constraint, fits: (output) => this.#thought(constraint.fits(output)) };
        },
      },
      enclave: {
        signResponse: async (receipt) => {
          if (this.signingFails) throw new Error('the helper is gone');
          return { signature: 'AA==', receipt: { payload: toBase64(Buffer.from(JSON.stringify(receipt))), signature: 'AA==' } };
        },
        signE2eResponse: async () => {
          throw new Error('these jobs are sealed by the coordinator');
        },
      },
      send: (message) => {
        // Load is reported after a delay, which on a busy machine may fall into any step.
        if (message.type !== 'load') this.sent.push(message);
      },
      sendFrame: (bytes, sent) => {
        this.frames.push(bytes);
        if (this.unsent === null) queueMicrotask(sent);
        else this.unsent.push(sent);
      },
      onEnd: () => {},
    });
  }

  lease(): ModelLease {
    return {
      thinkTags: { open: '<think>', close: '</think>' },
      thinks: true,
      identity: { engine: 'llama.cpp b1 cpu', weightsSha256: 'a'.repeat(64), templateSha256: 'b'.repeat(64) },
      embedding: this.embedding,
      image: this.image,
      systemFingerprint: 'fp_0123456789ab',
      generate: (request) => {
        const commands: StreamCommand[] = [];
        const generation = new Generation(this.streams.length, (command) => {
          commands.push(command);
          if (command === 'cancel') generation.end({ job: generation.job, kind: 'cancelled' });
        });
        this.streams.push({ generation, request, commands });
        return generation;
      },
      embed: (request) => {
        const embedding = new Embedding(this.embeddings.length, () => embedding.end({ job: embedding.job, kind: 'cancelled' }));
        this.embeddings.push({ embedding, request });
        return embedding;
      },
      generateImages: (request) => {
        const commands: string[] = [];
        const drawing = new ImageJob((command) => {
          commands.push(command);
          drawing.end({ kind: 'cancelled' });
        });
        this.drawings.push({ drawing, request, commands });
        return drawing;
      },
      release: () => this.released++,
    };
  }

  context(body: Uint8Array, changes: Partial<JobContext> = {}): JobContext {
    return {
      v: 1,
      job_id: randomUUID() as JobId,
      provider_id: providerId,
      key_id: this.key.id,
      endpoint: '/v1/chat/completions',
      model: 'pico',
      stream: true,
      max_tokens: 8192,
      overrides: { max_tokens: 8192 },
      response_id: 'chatcmpl-1',
      created: 1_800_000_000,
      request_sha256: sha256Hex(body),
      issued_at: now,
      expires_at: now + 60_000,
      ...changes,
    };
  }

  submit(
    body: Uint8Array,
    context: JobContext,
    { credit = 1 << 20, key = this.key, sealedAs = context, frames = (all: Uint8Array[]) => all } = {},
  ) {
    const sealed = sealRequest(sealedAs, encapsulate(key.pair.publicKey), body);
    this.jobs.handle({ type: 'job', context, enc: toBase64(sealed.enc), request_bytes: body.length, credit });
    for (const frame of frames([...sealed.frames])) this.jobs.frame(decodeFrame(frame));
    return sealed;
  }

  /** Runs everything ready, and tasks of other threads. */
  async settle(): Promise<void> {
    do {
      await Promise.allSettled(this.#thoughts);
      for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
    } while (this.#thoughts.size > 0);
  }

  async #thought<T>(thought: Promise<T>): Promise<T> {
    this.#thoughts.add(thought);
    try {
      return await thought;
    } finally {
      this.#thoughts.delete(thought);
    }
  }

  /** Waits until the condition holds, however slow the machine. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
  }

  /** Submits a job, and runs everything ready. */
  async start(body: Uint8Array, changes: Partial<JobContext> = {}, options: Parameters<Bench['submit']>[2] = {}) {
    const context = this.context(body, changes);
    const { responses } = this.submit(body, context, options);
    await this.settle();
    return { context, responses };
  }

  async cancel({ job_id }: JobContext): Promise<void> {
    this.jobs.handle({ type: 'cancel', job_id });
    await this.settle();
  }

  async failureOf(...job: Parameters<Bench['start']>): Promise<unknown> {
    const { context } = await this.start(...job);
    const failed = this.sent.filter((message) => message.type === 'job_failed' && message.job_id === context.job_id);
    expect(failed.length).toBeLessThanOrEqual(1);
    const [message] = failed;
    return message?.type === 'job_failed' ? message.failure : null;
  }

  /** The newest stream. */
  get stream(): ScriptedStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error('no job reached the engine');
    return stream;
  }

  /** First texts of the newest stream, a token each. */
  async write(...texts: readonly string[]): Promise<void> {
    const { generation } = this.stream;
    generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
    for (const text of texts) generation.push({ text, tokens: 1 });
    await this.settle();
  }

  /** The whole newest stream. */
  async finish(texts: readonly string[], ended?: Ended): Promise<void> {
    const { generation } = this.stream;
    generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
    for (const text of texts) generation.push({ text, tokens: 1 });
    generation.end(ended ?? { job: generation.job, kind: 'finished', reason: 'stop', completionTokens: texts.length });
    await this.settle();
  }

  /** Content of all frames. */
  text(responses: ResponseOpener): string {
    return Buffer.concat(this.frames.map((frame) => responses.open(decodeFrame(frame)))).toString();
  }

  /** Receipt of the completed job, null without one. */
  get receipt() {
    const completed = this.sent.find(({ type }) => type === 'job_completed');
    return completed?.type === 'job_completed' ? JSON.parse(Buffer.from(completed.receipt.payload, 'base64').toString()) : null;
  }
}

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});

const chat = (changes: Record<string, unknown> = {}) =>
  Buffer.from(JSON.stringify({ model: 'pico', stream: true, messages: [{ role: 'user', content: 'Hi' }], ...changes }));

test.each<[string, Partial<JobContext>, string]>([
  ['of another provider', { provider_id: 'f'.repeat(32) as ProviderId }, 'bad_context'],
  ['sealed to a key that is not known', { key_id: 'f'.repeat(16) as KeyId }, 'unknown_key'],
  ['for a model that is not served', { model: 'other' }, 'model_not_loaded'],
  ['that has expired', { issued_at: now - 300_000, expires_at: now - CLOCK_TOLERANCE_MS - 1 }, 'expired'],
  ['from the future', { issued_at: now + CLOCK_TOLERANCE_MS + 1, expires_at: now + 2 * CLOCK_TOLERANCE_MS }, 'expired'],
  ['that ends before it begins', { issued_at: now, expires_at: now - 1 }, 'bad_context'],
  ['whose body is another one', { request_sha256: '0'.repeat(64) }, 'bad_context'],
  ["whose stream flag is not the body's", { stream: false }, 'bad_context'],
  ['whose limit is not the one put in', { max_tokens: 100 }, 'bad_context'],
])('a job %s is rejected', async (_what, changes, code) => {
  expect(await bench.failureOf(chat(), changes)).toEqual({ code });
  expect(bench.streams).toHaveLength(0);
  expect(bench.jobs.active).toBe(0);
});

test.each<[string, Record<string, unknown>, Partial<JobContext>]>([
  ['another model', { model: 'other' }, {}],
  ['a limit where the context has one of its own', { max_tokens: 5 }, {}],
  ['a smaller limit', { max_tokens: 5 }, { max_tokens: 6, overrides: {} }],
  ['no limit where the context claims the client set it', {}, { overrides: {} }],
])('a body that names %s is rejected', async (_what, request, changes) => {
  expect(await bench.failureOf(chat(request), changes)).toEqual({ code: 'bad_context' });
});

test('clocks may differ by the tolerance', async () => {
  const late = bench.context(chat(), { issued_at: now - 200_000, expires_at: now - CLOCK_TOLERANCE_MS });
  expect(await bench.failureOf(chat(), late)).toBeNull();
  const early = bench.context(chat(), { issued_at: now + CLOCK_TOLERANCE_MS, expires_at: now + 200_000 });
  expect(await bench.failureOf(chat(), early)).toBeNull();
  expect(bench.streams).toHaveLength(2);
});

test('jobs sealed to the old key are opened in its grace time', async () => {
  expect(await bench.failureOf(chat(), { key_id: bench.oldKey.id }, { key: bench.oldKey })).toBeNull();
  expect(bench.streams).toHaveLength(1);
});

test('a job is opened once', async () => {
  bench = new Bench(8);
  const { context } = await bench.start(chat());
  bench.submit(chat(), context);
  await bench.settle();
  expect(bench.sent).toContainEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'replayed' } });
  expect(bench.streams).toHaveLength(1);
});

test('a body sealed for another context, key or changed on the way cannot be opened', async () => {
  const body = chat();
  const context = bench.context(body);
  expect(await bench.failureOf(body, context, { sealedAs: { ...context, max_tokens: 1 } })).toEqual({ code: 'unsealing_failed' });
  expect(await bench.failureOf(body, {}, { key: bench.oldKey })).toEqual({ code: 'unsealing_failed' });
  const flip = (all: Uint8Array[]) => all.map((frame) => frame.map((byte, index) => (index === 30 ? byte ^ 1 : byte)));
  expect(await bench.failureOf(body, {}, { frames: flip })).toEqual({ code: 'unsealing_failed' });
  expect(bench.jobs.active).toBe(0);
});

test('a request rejected by the format names the field without its value', async () => {
  expect(await bench.failureOf(chat({ temperature: 77 }))).toEqual({ code: 'invalid_request', param: 'temperature' });
});

test('slots limit jobs, and draining admits none', async () => {
  bench = new Bench(1);
  await bench.start(chat());
  expect(await bench.failureOf(chat())).toEqual({ code: 'busy' });
  const drained = bench.jobs.drain(60_000);
  expect(bench.sent).toContainEqual({ type: 'draining' });
  expect(await bench.failureOf(chat())).toEqual({ code: 'draining' });
  await bench.finish(['Hi']);
  await drained;
  expect(bench.sent.at(-1)?.type).toBe('job_completed');
});

/** Four jobs: without a body, without output, with output, and a plain job. */
async function fourJobs(bench: Bench): Promise<readonly JobContext[]> {
  const contexts = [true, true, true, false].map((stream) => bench.context(chat({ stream }), { stream }));
  for (const [index, context] of contexts.entries()) {
    bench.submit(chat({ stream: context.stream }), context, { frames: (all) => (index === 0 ? [] : all) });
    await bench.settle();
  }
  for (const { generation } of bench.streams.slice(1)) {
    generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
    generation.push({ text: 'Hi', tokens: 1 });
  }
  await bench.settle();
  return contexts;
}

function failuresOf(bench: Bench): Map<string, string> {
  return new Map(bench.sent.flatMap((message) => (message.type === 'job_failed' ? [[message.job_id, message.failure.code]] : [])));
}

test('draining hands back unstarted jobs at once, and jobs without output after the grace time', async () => {
  bench = new Bench(4);
  const [bodiless, silent, begun, plain] = (await fourJobs(bench)) as [JobContext, JobContext, JobContext, JobContext];
  const drained = bench.jobs.drain(200);
  await bench.settle();
  expect([...failuresOf(bench)]).toEqual([[bodiless.job_id, 'draining']]);
  await drained;
  expect(failuresOf(bench)).toEqual(
    new Map([
      [bodiless.job_id, 'draining'],
      [silent.job_id, 'draining'],
      [begun.job_id, 'cancelled'],
      [plain.job_id, 'draining'],
    ]),
  );
});

test('a forced drain does not wait', async () => {
  bench = new Bench(4);
  await fourJobs(bench);
  const forced = new AbortController();
  const drained = bench.jobs.drain(60_000, forced.signal);
  await bench.settle();
  expect(failuresOf(bench).size).toBe(1);
  forced.abort();
  await drained;
  expect(failuresOf(bench).size).toBe(4);
});

describe('a machine that leaves', () => {
  const stays = new AbortController().signal;

  test('takes no new jobs, hands back unstarted ones, finishes the rest, and resumes later', async () => {
    bench = new Bench(8);
    const [bodiless] = (await fourJobs(bench)) as [JobContext];
    bench.away = 'away';
    const aside = bench.jobs.drainForAbsence({ graceMs: 60_000, forcedMs: 60_000 }, new AbortController().signal, stays);
    expect(await bench.failureOf(chat())).toEqual({ code: 'away' });
    expect(failuresOf(bench).get(bodiless.job_id)).toBe('away');
    for (const { generation } of bench.streams) {
      generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
      generation.end({ job: generation.job, kind: 'finished', reason: 'stop', completionTokens: 1 });
    }
    await aside;
    expect(bench.jobs.active).toBe(0);
    expect(bench.sent.filter(({ type }) => type === 'job_completed')).toHaveLength(3);
    expect(bench.sent.some(({ type }) => type === 'draining')).toBe(false);
    bench.away = null;
    expect(await bench.failureOf(chat())).toBeNull();
  });

  test('a forced shutdown hands back jobs without output, and cancels the rest after a grace time', async () => {
    bench = new Bench(8);
    const [bodiless, silent, begun, plain] = (await fourJobs(bench)) as [JobContext, JobContext, JobContext, JobContext];
    bench.away = 'busy';
    const forced = new AbortController();
    const aside = bench.jobs.drainForAbsence({ graceMs: 60_000, forcedMs: 50 }, forced.signal, stays);
    forced.abort();
    await bench.settle();
    const handedBack = [bodiless, silent, plain].map(({ job_id }) => [job_id, 'busy']);
    expect([...failuresOf(bench)].sort()).toEqual(handedBack.sort());
    await aside;
    expect(failuresOf(bench).get(begun.job_id)).toBe('cancelled');
  });

  test('cancels nothing more when it stays after all', async () => {
    bench = new Bench(8);
    await fourJobs(bench);
    bench.away = 'away';
    const stay = new AbortController();
    const aside = bench.jobs.drainForAbsence({ graceMs: 60_000, forcedMs: 60_000 }, new AbortController().signal, stay.signal);
    stay.abort();
    await aside;
    await bench.settle();
    expect(bench.jobs.active).toBe(3);
  });
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
      answersAtOnce: false,
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
    const bench = new Bench(2, options);
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
  bench = new Bench(2, { closeTimeoutMs: 50 });
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

const weather = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
const callOf = (city: string) => ['<tool_call>\n', '{"name": "weather", ', '"arguments": {"city": ', `"${city}"}}`, '\n</tool_call>'];

/** A client's answer for a scripted output. */
async function answerTo(request: Record<string, unknown>, texts: readonly string[], context: Partial<JobContext> = {}) {
  const bench = new Bench();
  const { responses } = await bench.start(chat({ stream: false, ...request }), { stream: false, ...context });
  await bench.finish(texts);
  return { body: JSON.parse(bench.text(responses)), receipt: bench.receipt, stream: bench.stream };
}

test('tool calls get ids of their own', async () => {
  const { body, receipt, stream } = await answerTo({ tools: [weather] }, [...callOf('Lima'), '\n', ...callOf('Rome')]);
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
  const { body } = await answerTo({ max_tokens: 50, tools: [messagesTool] }, callOf('Lima'), { ...messagesContext, max_tokens: 50 });
  expect(body.content).toEqual([
    { type: 'tool_use', id: expect.stringMatching(/^toolu_[0-9a-f]{24}$/), name: 'weather', input: { city: 'Lima' } },
  ]);
  const legacy = await answerTo({ functions: [weather.function] }, [...callOf('Lima'), ...callOf('Rome')]);
  expect(legacy.body.choices[0]).toMatchObject({
    finish_reason: 'function_call',
    message: { content: null, function_call: { name: 'weather', arguments: '{"city": "Lima"}' } },
  });
  expect(legacy.body.choices[0].message).not.toHaveProperty('tool_calls');
});

test('the model and its engine have a fingerprint', async () => {
  const { body } = await answerTo({ service_tier: 'auto' }, ['Hi']);
  expect(body).toMatchObject({ system_fingerprint: 'fp_0123456789ab', service_tier: 'default' });
});

test('without parallel calls the first one ends the answer', async () => {
  const texts = [...callOf('Lima'), ...callOf('Rome')];
  const { body, receipt, stream } = await answerTo({ tools: [weather], parallel_tool_calls: false }, texts);
  expect(body.choices[0].message.tool_calls).toHaveLength(1);
  expect(receipt).toMatchObject({ finish_reason: 'tool_calls', usage: { completion_tokens: 4 } });
  expect(stream.request.maxTokens).toBe(8192);
});

test.each([{}, { tools: [weather], tool_choice: 'none' }])(
  'what looks like a call is text where none may be made (%j)',
  async (request) => {
    const { body } = await answerTo(request, callOf('Lima'));
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
  const { stream } = await answerTo({ messages, tools: [weather], reasoning_effort: 'none' }, ['Warm.']);
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

const user = [{ role: 'user', content: 'Hi' }];
const messagesContext = { endpoint: '/v1/messages', max_tokens: 9, overrides: {}, response_id: 'msg_1' } as const;

test('a token count generates no token', async () => {
  const context = { endpoint: '/v1/messages/count_tokens', max_tokens: 1, overrides: {}, response_id: 'count_1' } as const;
  const { body, receipt, stream } = await answerTo({ stream: undefined, messages: user }, [], context);
  expect(stream.request.maxTokens).toBe(0);
  expect(body).toEqual({ input_tokens: 11 });
  expect(receipt).toMatchObject({ finish_reason: 'stop', usage: { prompt_tokens: 11, completion_tokens: 0 }, hidden_tokens: 0 });
});

test('a legacy completion is a text prompt, and its errors name the field', async () => {
  const context = { endpoint: '/v1/completions', response_id: 'cmpl-1' } as const;
  const { body, stream } = await answerTo({ messages: undefined, prompt: 'Once' }, [' upon'], context);
  expect(stream.request.prompt).toEqual({ type: 'text', text: 'Once' });
  expect(body.choices[0].text).toBe(' upon');
});

test('a message names the stop sequence that ended it', async () => {
  const { body, stream } = await answerTo(
    { max_tokens: 9, stop_sequences: ['END'], messages: user, top_k: 3 },
    ['one EN', 'D'],
    messagesContext,
  );
  expect(body).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'END', content: [{ text: 'one ' }] });
  expect(stream.request.sampling.topK).toBe(3);
});

test("an idle stream of messages sends pings, after the prompt's count", async () => {
  bench = new Bench(2, { pingAfterMs: 20 });
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
  bench = new Bench(2, { progressEveryMs: 20 });
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
  const { body } = await answerTo({ response_format: jsonSchema({ type: 'array', uniqueItems: true }) }, ['[1,1]']);
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
  const { body, stream } = await answerTo({ response_format: { type: 'json_object' }, tools: [weather] }, [...content]);
  expect(stream.request).toMatchObject({
    grammar: { rules: expect.any(Array) },
    prompt: { thinking: false, answersAtOnce: true },
  });
  expect(body.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content } });
});

test('a tool may still be called beside a response format', async () => {
  const { body } = await answerTo({ response_format: { type: 'json_object' }, tools: [weather] }, callOf('Lima'));
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

describe('a model that is not loaded', () => {
  test('is waited for with progress reports, and the lease ends with the job', async () => {
    let loaded: () => void = () => {};
    bench = new Bench(2, { progressEveryMs: 5 });
    bench.loaded = new Promise<void>((resolve) => (loaded = resolve));
    bench.submit(chat(), bench.context(chat()));
    const progress = () => bench.sent.filter(({ type }) => type === 'job_progress').length;
    await bench.until(() => progress() >= 2);
    expect(bench.sent[0]?.type).toBe('job_accepted');
    expect(bench.streams).toHaveLength(0);
    loaded();
    await bench.until(() => bench.streams.length === 1);
    await bench.finish(['Hi']);
    await bench.until(() => bench.sent.some(({ type }) => type === 'job_completed'));
    expect(bench.sent.at(-1)?.type).toBe('job_completed');
    await bench.until(() => bench.released === 1);
    expect([bench.leased, bench.released]).toEqual([1, 1]);
  });

  test('is not waited for by a cancelled job, nor loaded for an invalid one', async () => {
    bench.loaded = new Promise(() => {});
    const { context } = await bench.start(chat());
    await bench.cancel(context);
    expect(bench.sent.at(-1)).toEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'cancelled' } });
    await bench.failureOf(chat({ temperature: 'hot' }));
    expect(bench.leased).toBe(1);
    expect(bench.jobs.active).toBe(0);
  });
});

describe('vectors', () => {
  const facts = { dimensions: 2, truncatable: true };
  const vector = Buffer.from(Float32Array.of(0.6, 0.8).buffer).toString('base64');
  const terms = { endpoint: '/v1/embeddings', response_id: 'embd-1', stream: false, max_tokens: 1, overrides: {} } as const;
  const request = (changes: object = {}) => Buffer.from(JSON.stringify({ model: 'pico', input: ['a', 'b'], ...changes }));

  test('are sent whole and signed, in the requested encoding', async () => {
    for (const [encoding_format, expected] of [
      ['base64', vector],
      ['float', [0.600000024, 0.800000012]],
    ] as const) {
      const bench = new Bench();
      bench.embedding = facts;
      const { responses } = await bench.start(request({ encoding_format }), terms);
      const [{ embedding, request: asked } = { embedding: null, request: null }] = bench.embeddings;
      expect(asked).toEqual({ inputs: ['a', 'b'], dimensions: null });
      for (let index = 0; index < 2; index++) embedding?.push(vector, 3);
      embedding?.end({ job: 0, kind: 'finished', reason: 'stop', completionTokens: 0 });
      await bench.settle();
      expect(bench.receipt).toMatchObject({ usage: { prompt_tokens: 6, completion_tokens: 0, total_tokens: 6 }, finish_reason: 'stop' });
      const text = bench.text(responses);
      expect(JSON.parse(text)).toEqual({
        object: 'list',
        data: [0, 1].map((index) => ({ object: 'embedding', index, embedding: expected })),
        model: 'pico',
        usage: { prompt_tokens: 6, total_tokens: 6 },
      });
      expect(bench.released).toBe(1);
    }
  });

  test('are rejected for text models and unsupported lengths, and text for embedding models', async () => {
    const refused = async (embedding: EmbeddingFacts | null, body: Buffer, context: Partial<JobContext>) => {
      const bench = new Bench();
      bench.embedding = embedding;
      const failure = await bench.failureOf(body, context);
      expect(bench.released).toBe(1);
      return failure;
    };
    expect(await refused(null, request(), terms)).toEqual({ code: 'unsupported', param: 'model' });
    expect(await refused(facts, request({ dimensions: 3 }), terms)).toEqual({ code: 'unsupported', param: 'dimensions' });
    expect(await refused({ ...facts, truncatable: false }, request({ dimensions: 1 }), terms)).toEqual({
      code: 'unsupported',
      param: 'dimensions',
    });
    expect(await refused(facts, chat(), {})).toEqual({ code: 'unsupported', param: 'model' });
  });

  test.each([
    [
      { job: 0, kind: 'context_length_exceeded', limit: 9, actual: 12 },
      { code: 'context_length_exceeded', limit: 9, actual: 12 },
    ],
    [
      { job: 0, kind: 'invalid_request', field: 'input' },
      { code: 'invalid_request', param: 'input' },
    ],
    [{ job: 0, kind: 'engine_failed', message: 'killed' }, { code: 'engine_failed' }],
  ] as const)('end with what the engine found: %j', async (ended, failure) => {
    bench.embedding = facts;
    const { context } = await bench.start(request(), terms);
    bench.embeddings[0]?.embedding.end(ended);
    await bench.settle();
    expect(bench.sent.at(-1)).toEqual({ type: 'job_failed', job_id: context.job_id, failure });
  });

  test('are cancelled when the client disconnects', async () => {
    bench.embedding = facts;
    const { context } = await bench.start(request(), terms);
    await bench.cancel(context);
    expect(bench.sent.at(-1)).toEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'cancelled' } });
    expect(bench.released).toBe(1);
  });
});

describe('images', () => {
  const made = { steps: 8, guidance: 3, sizes: ['64x64', '128x64'] };
  const urls = ['https://images.example/i/one', 'https://images.example/i/two'];
  const terms = {
    endpoint: '/v1/images/generations',
    response_id: 'img-1',
    stream: false,
    max_tokens: 1,
    overrides: { image_urls: urls },
  } as const;
  const request = (changes: object = {}) => Buffer.from(JSON.stringify({ model: 'pico', prompt: 'a red square', n: 2, ...changes }));
  const inBody = { response_format: 'b64_json' };
  const inBodyTerms = { ...terms, overrides: {} };
  /** Large enough for many frames. */
  const pictures = () => [new Uint8Array(150_000).fill(7), Uint8Array.of(1, 2, 3)];

  function finish(bench: Bench, images: readonly Uint8Array[]): void {
    const [first] = bench.drawings;
    first?.drawing.promptRead(5);
    for (const image of images) first?.drawing.push(image);
    first?.drawing.end({ kind: 'finished' });
  }

  async function answered(body: Uint8Array, context: Partial<JobContext>, images = pictures()) {
    const bench = new Bench();
    bench.image = made;
    const { responses } = await bench.start(body, context);
    finish(bench, images);
    // Each frame waits for the previous one.
    const isOver = ({ type }: ProviderMessage) => type === 'job_completed' || type === 'job_failed';
    while (!bench.sent.some(isOver)) await bench.settle();
    const completed = bench.sent.find(isOver);
    if (completed?.type !== 'job_completed') throw new Error(`the job did not complete: ${JSON.stringify(completed)}`);
    const reader = new ImagePartsReader({
      images: 'image_urls' in (context.overrides ?? {}) ? 2 : 0,
      maxImageBytes: 1e6,
      maxBodyBytes: 1e6,
    });
    for (const bytes of bench.frames) reader.push(responses.open(decodeFrame(bytes)));
    return { bench, receipt: bench.receipt, completed, parts: reader.end() };
  }

  test('are sent sealed beside a body with their URLs, and the receipt lists their hashes', async () => {
    const images = pictures();
    const { bench, receipt, completed, parts } = await answered(request({ seed: 9, size: '128x64' }), terms, images);
    expect(bench.drawings[0]?.request).toEqual({
      prompt: 'a red square',
      size: { width: 128, height: 64 },
      count: 2,
      seed: 9,
      steps: 8,
      guidance: 3,
      encoding: 'png',
      quality: null,
    });
    expect(parts.images.map((image) => sha256Hex(image))).toEqual(pictures().map((image) => sha256Hex(image)));
    const body = Buffer.from(parts.body);
    expect(JSON.parse(body.toString())).toEqual({
      created: 1_800_000_000,
      data: urls.map((url) => ({ url })),
      output_format: 'png',
      size: '128x64',
      usage: { input_tokens: 5, input_tokens_details: { image_tokens: 0, text_tokens: 5 }, output_tokens: 0, total_tokens: 5 },
    });
    // Only the body is signed.
    expect(completed.response_sha256).toBe(sha256Hex(body));
    expect(receipt).toMatchObject({
      response_sha256: sha256Hex(body),
      image_sha256: pictures().map((image) => sha256Hex(image)),
      usage: { prompt_tokens: 5, completion_tokens: 0, total_tokens: 5, images: 2 },
      overrides: terms.overrides,
      finish_reason: 'stop',
      hidden_tokens: 0,
    });
    // Image buffers are overwritten at the end of the job.
    expect(images.every((image) => image.every((byte) => byte === 0))).toBe(true);
    expect(bench.released).toBe(1);
  });

  test('are in the body if the client requests base64', async () => {
    const { parts, receipt } = await answered(request(inBody), inBodyTerms);
    const { data } = JSON.parse(Buffer.from(parts.body).toString()) as { data: { b64_json: string }[] };
    expect(data.map(({ b64_json }) => sha256Hex(Buffer.from(b64_json, 'base64')))).toEqual(pictures().map((image) => sha256Hex(image)));
    expect(receipt.image_sha256).toEqual(pictures().map((image) => sha256Hex(image)));
    expect(parts.images).toEqual([]);
  });

  test.each([
    ['low', 4],
    ['medium', 8],
    ['standard', 8],
    ['auto', 8],
    ['high', 12],
    ['hd', 12],
  ])('of quality %s take %i steps', async (quality, steps) => {
    const { bench } = await answered(request({ quality }), terms);
    expect(bench.drawings[0]?.request.steps).toBe(steps);
  });

  test.each([
    [undefined, '64x64'],
    ['auto', '64x64'],
    ['128x64', '128x64'],
  ])('of size %s are returned as %s', async (size, expected) => {
    const { bench } = await answered(request({ size }), terms);
    const asked = bench.drawings[0]?.request.size;
    expect(`${asked?.width}x${asked?.height}`).toBe(expected);
  });

  test.each<[string, ModelLease['image'], object, Partial<JobContext>, object]>([
    ['a model that makes none', null, {}, terms, { code: 'unsupported', param: 'model' }],
    ['a size that the model does not make', made, { size: '1024x1024' }, terms, { code: 'unsupported', param: 'size' }],
    ['fewer addresses than images', made, {}, { ...terms, overrides: { image_urls: ['https://a.example/1'] } }, { code: 'bad_context' }],
    ['no addresses', made, {}, inBodyTerms, { code: 'bad_context' }],
    ['addresses that nobody asked for', made, inBody, terms, { code: 'bad_context' }],
    ['another model than the context names', made, { model: 'other' }, terms, { code: 'bad_context' }],
    ['no prompt', made, { prompt: ' ' }, terms, { code: 'invalid_request', param: 'prompt' }],
    ['too many', made, { n: 5 }, terms, { code: 'invalid_request', param: 'n' }],
  ])('are refused: %s', async (_what, image, changes, context, failure) => {
    bench.image = image;
    expect(await bench.failureOf(request(changes), context)).toEqual(failure);
    expect(bench.drawings).toHaveLength(0);
    expect(bench.released).toBe(bench.leased);
  });

  test('of a model chosen by the coordinator are generated', async () => {
    const { bench } = await answered(Buffer.from(JSON.stringify({ prompt: 'a red square', n: 2 })), terms);
    expect(bench.drawings).toHaveLength(1);
  });

  test('text is rejected for an image model', async () => {
    bench.image = made;
    expect(await bench.failureOf(chat())).toEqual({ code: 'unsupported', param: 'model' });
  });

  test('that fail, or are fewer than requested, fail the job and are overwritten', async () => {
    for (const end of [{ kind: 'engine_failed', message: 'killed' }, { kind: 'finished' }] as const) {
      const bench = new Bench();
      bench.image = made;
      const [image = new Uint8Array()] = pictures();
      await bench.start(request(), terms);
      bench.drawings[0]?.drawing.push(image);
      bench.drawings[0]?.drawing.end(end);
      await bench.settle();
      expect(bench.sent.at(-1)).toMatchObject({ type: 'job_failed', failure: { code: 'engine_failed' } });
      expect(bench.frames).toHaveLength(0);
      expect(image.every((byte) => byte === 0)).toBe(true);
    }
  });

  test('are cancelled when the client disconnects', async () => {
    bench.image = made;
    const { context } = await bench.start(request(), terms);
    await bench.cancel(context);
    expect(bench.drawings[0]?.commands).toContain('cancel');
    expect(bench.sent.at(-1)).toEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'cancelled' } });
    expect(bench.released).toBe(1);
  });

  test('report progress while generated', async () => {
    bench = new Bench(2, { progressEveryMs: 1100 });
    bench.image = made;
    bench.submit(request(), bench.context(request(), terms));
    while (!bench.sent.some(({ type }) => type === 'job_progress' || type === 'job_failed')) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    finish(bench, pictures());
    while (!bench.sent.some(({ type }) => type === 'job_completed' || type === 'job_failed')) await bench.settle();
    expect(bench.sent.map(({ type }) => type)).not.toContain('job_failed');
  });
});
