/** Models that are not loaded, embedding models and image models. */
import { decodeFrame, ImagePartsReader, type JobContext, MAX_PLAIN_RESPONSE_BYTES, type ProviderMessage } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import type { ModelLease } from '../../src/jobs/model-lease.js';
import type { EmbeddingFacts } from '../../src/models/embedding-facts.js';
import { Bench, chat } from './session-job-bench.js';

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());

let bench: Bench;
beforeEach(() => {
  bench = new Bench(constraints);
});

describe('a model that is not loaded', () => {
  test('is waited for with progress reports, and the lease ends with the job', async () => {
    let loaded: () => void = () => {};
    bench = new Bench(constraints, 2, { progressEveryMs: 5 });
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
      const bench = new Bench(constraints);
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
      const bench = new Bench(constraints);
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

  test('are refused where no response has room for them', async () => {
    bench.embedding = facts;
    const { context } = await bench.start(request({ encoding_format: 'base64' }), terms);
    const [{ embedding } = { embedding: null }] = bench.embeddings;
    for (let index = 0; index < 2; index++) embedding?.push('A'.repeat(MAX_PLAIN_RESPONSE_BYTES / 2), 3);
    embedding?.end({ job: 0, kind: 'finished', reason: 'stop', completionTokens: 0 });
    await bench.settle();
    expect(bench.sent.at(-1)).toEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'unsupported', param: 'input' } });
    expect(bench.frames).toHaveLength(0);
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
    const bench = new Bench(constraints);
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
      const bench = new Bench(constraints);
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
    bench = new Bench(constraints, 2, { progressEveryMs: 1100 });
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
