/** End-to-end jobs with real sealing and a scripted engine: contents, refusals, replay, cancel, and what a coordinator learns. */
import { CLOCK_TOLERANCE_MS, E2E_STREAM_PADDING_BYTES, type Endpoint, type JobContext, toHex } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import { E2eBench, NOW, type SealOptions, sealingKey, WAIT } from './e2e-bench.js';

const CANARY = 'canary-7f3a';

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());
let bench: E2eBench;
beforeEach(() => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  bench = new E2eBench(constraints);
});
afterEach(() => void vi.restoreAllMocks());

const messages = [{ role: 'user', content: CANARY }];
const chat = (changes: object = {}) => ({ model: 'pico', messages, ...changes });

/** Ends of streams that the format renders, before the coordinator's signature event. */
const TEXT_REQUESTS: [Endpoint, object, object][] = [
  ['/v1/chat/completions', chat(), { choices: [{ message: { content: 'Hello there' } }] }],
  ['/v1/completions', { model: 'pico', prompt: CANARY, max_tokens: 100 }, { choices: [{ text: 'Hello there' }] }],
  ['/v1/responses', { model: 'pico', input: CANARY }, { output: [{ content: [{ text: 'Hello there' }] }] }],
  ['/v1/messages', chat({ max_tokens: 100 }), { content: [{ text: 'Hello there' }] }],
];

describe.each(TEXT_REQUESTS)('%s', (endpoint, request, answer) => {
  test('a plain answer', async () => {
    const sealed = bench.seal(request, { terms: { endpoint } });
    const context = bench.submit(sealed);
    await bench.generated(['Hello', ' there']);
    expect((await bench.ended(context.job_id)).end.kind).toBe('completed');
    const opened = bench.open(sealed, context);
    expect(opened).toMatchObject({ status: 200, contentType: 'application/json; charset=utf-8', headers: undefined });
    expect(JSON.parse(opened.body)).toMatchObject(answer);
    expect(opened.receipt).toMatchObject({ endpoint, finish_reason: 'stop', usage: { prompt_tokens: 11, completion_tokens: 2 } });
    expect(opened.receipt).toMatchObject({ engine: 'llama.cpp b1 cpu', weights_sha256: 'a'.repeat(64) });
  });

  test('a streamed answer', async () => {
    const sealed = bench.seal({ ...request, stream: true }, { terms: { endpoint } });
    const context = bench.submit(sealed);
    await bench.generated(['Hello', ' there']);
    expect((await bench.ended(context.job_id)).end.kind).toBe('completed');
    const { body, contentType, receipt } = bench.open(sealed, context);
    expect(contentType).toBe('text/event-stream; charset=utf-8');
    expect(body).toContain('data: ');
    expect(body).toContain(' there');
    expect(receipt.usage?.completion_tokens).toBe(2);
  });
});

test('tokens are counted, and nothing is generated', async () => {
  const sealed = bench.seal(chat(), { terms: { endpoint: '/v1/messages/count_tokens', max_tokens: 1 } });
  const context = await bench.answered(sealed, []);
  expect(JSON.parse(bench.open(sealed, context).body)).toEqual({ input_tokens: 11 });
});

test('embeddings', async () => {
  bench.embedding = { dimensions: 2, truncatable: false };
  const sealed = bench.seal({ model: 'pico', input: CANARY }, { terms: { endpoint: '/v1/embeddings', max_tokens: 1 } });
  const context = await bench.answered(sealed);
  expect(JSON.parse(bench.open(sealed, context).body)).toMatchObject({ data: [{ embedding: [0.5, 0.5] }] });
});

test('images are embedded in the body, and the receipt commits to each', async () => {
  bench.image = { steps: 1, guidance: 1, sizes: ['512x512'] };
  const request = { model: 'pico', prompt: CANARY, n: 2, size: '512x512', response_format: 'b64_json' };
  const terms = { endpoint: '/v1/images/generations', max_tokens: 1, images: 2, image_size: '512x512' } as const;
  const sealed = bench.seal(request, { terms });
  const context = await bench.answered(sealed);
  const { body, receipt } = bench.open(sealed, context);
  const images = (JSON.parse(body) as { data: { b64_json: string }[] }).data.map((image) => Buffer.from(image.b64_json, 'base64'));
  expect(images).toEqual([Buffer.from([1, 2, 3, 0]), Buffer.from([1, 2, 3, 1])]);
  const commitments = sealed.candidates[1]?.commitments;
  expect(receipt.image_commitments).toEqual(images.map((image, index) => commitments?.image(index, Buffer.from(sha256Hex(image), 'hex'))));
  expect(receipt.usage?.images).toBe(2);
});

test('names the members without effect', async () => {
  const sealed = bench.seal(chat({ user: 'someone', metadata: { a: 'b' } }));
  const context = await bench.answered(sealed, ['Hi']);
  expect(bench.open(sealed, context).headers?.['x-inference-ignored']).toContain('metadata');
});

describe('a checkpoint of the log', () => {
  const log = { size: 9, root: 'ab'.repeat(32) };
  const checkpointOf = async (request: object, options: SealOptions, checkpoint: string | null): Promise<string | undefined> => {
    const bench = new E2eBench(constraints);
    bench.checkpointFor = (head) => {
      expect(head).toEqual(log);
      return checkpoint;
    };
    const sealed = bench.seal(request, options);
    const context = bench.submit(sealed);
    if (!('temprature' in request)) await bench.generated(['Hi']);
    await bench.ended(context.job_id);
    return bench.open(sealed, context).checkpoint;
  };

  test('travels in the head of answers and refusals, to clients that follow the log', async () => {
    for (const request of [chat(), chat({ stream: true }), chat({ temprature: 1 })]) {
      expect(await checkpointOf(request, { terms: { log } }, 'note')).toBe('note');
      expect(await checkpointOf(request, {}, 'note')).toBeUndefined();
      expect(await checkpointOf(request, { terms: { log } }, null)).toBeUndefined();
    }
  });
});

describe('a request at fault is refused inside the seal, signed, without usage', () => {
  const cases: [string, object, SealOptions, RegExp][] = [
    ['a value out of range', chat({ temperature: 77 }), {}, /temperature/],
    ['an unknown member', chat({ temprature: 1 }), {}, /temprature/],
    ['no JSON schema that can be enforced', chat({ response_format: { type: 'json_schema' } }), {}, /response_format/],
    ['another model than its context', chat({ model: 'other' }), {}, /context and its body/],
    ['several choices', chat({ n: 2, max_tokens: 5 }), {}, /n must be 1 in end-to-end mode/],
    ['routing preferences', chat({ provider: { min_trust: 'hardware' } }), {}, /does not take provider: .*"unsupported_parameter"/],
    ['fallback models', chat({ models: ['other'] }), {}, /does not take models: /],
    ['a serial number', chat({ provider_serial: 'C02' }), {}, /does not take provider_serial: /],
    [
      'routing preferences for images',
      { model: 'pico', prompt: 'x', response_format: 'b64_json', provider: { order: ['C02'] } },
      { terms: { endpoint: '/v1/images/generations', max_tokens: 1, images: 1 } },
      /does not take provider: /,
    ],
    ['another limit than its context', chat({ max_tokens: 7 }), {}, /max_tokens/],
    [
      'more images than its context',
      { model: 'pico', prompt: 'x', n: 2, response_format: 'b64_json' },
      { terms: { endpoint: '/v1/images/generations', max_tokens: 1, images: 1 } },
      /images/,
    ],
    [
      'another size than its context',
      { model: 'pico', prompt: 'x', size: '512x512', response_format: 'b64_json' },
      { terms: { endpoint: '/v1/images/generations', max_tokens: 1, images: 1, image_size: '64x64' } },
      /image_size/,
    ],
    [
      'no size, unlike its context',
      { model: 'pico', prompt: 'x', response_format: 'b64_json' },
      { terms: { endpoint: '/v1/images/generations', max_tokens: 1, images: 1, image_size: '512x512' } },
      /image_size/,
    ],
    [
      'images by URL',
      { model: 'pico', prompt: 'x' },
      { terms: { endpoint: '/v1/images/generations', max_tokens: 1, images: 1 } },
      /b64_json/,
    ],
  ];
  test.each(cases)('%s', async (_what, request, options, message) => {
    const sealed = bench.seal(request, options);
    const context = bench.submit(sealed);
    expect((await bench.ended(context.job_id)).end.kind).toBe('refused');
    const { status, body, receipt } = bench.open(sealed, context);
    expect(status).toBe(400);
    expect(body).toMatch(message);
    expect(receipt).toMatchObject({ finish_reason: 'refused', hidden_tokens: 0 });
    expect(receipt).not.toHaveProperty('usage');
    expect(bench.generations).toHaveLength(0);
    expect(bench.sent.map(({ type }) => type)).toEqual(['job_accepted', 'job_completed']);
  });

  test('in the shape of its format', async () => {
    const sealed = bench.seal(chat({ max_tokens: 100, temperature: 77, stream: true }), { terms: { endpoint: '/v1/messages' } });
    const context = await bench.answered(sealed);
    const opened = bench.open(sealed, context);
    expect(opened).toMatchObject({ status: 400, contentType: 'application/json; charset=utf-8', headers: { 'x-should-retry': 'false' } });
    expect(JSON.parse(opened.body)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
  });

  test('a prompt that is too long, with its numbers', async () => {
    const sealed = bench.seal(chat({ stream: true }));
    const context = bench.submit(sealed);
    await vi.waitFor(() => expect(bench.generations).toHaveLength(1), WAIT);
    const generation = bench.generations[0]?.generation;
    generation?.end({ job: 0, kind: 'context_length_exceeded', limit: 4096, actual: 54321 });
    await bench.ended(context.job_id);
    const { status, body } = bench.open(sealed, context);
    expect(status).toBe(400);
    expect(body).toMatch(/4096.*54321/);
    expect(JSON.stringify(bench.sent)).not.toContain('54321');
  });
});

test('failures reach the coordinator as bare codes', async () => {
  const sealed = bench.seal(chat({ stream: true }));
  const context = bench.submit(sealed);
  const generation = await bench.begun(['Hi']);
  await vi.waitFor(() => expect(bench.payloads(context.job_id).length).toBeGreaterThan(0), WAIT);
  generation.end({ job: generation.job, kind: 'context_length_exceeded', limit: 4096, actual: 54321 });
  await bench.ended(context.job_id);
  expect(bench.sent.at(-1)).toEqual({ type: 'job_failed', job_id: context.job_id, failure: { code: 'context_length_exceeded' } });
});

test('neither messages nor events contain prompt, output or field values, however jobs end', async () => {
  const submit = async (request: object) => {
    const context = bench.submit(bench.seal(request));
    return context.job_id;
  };
  const completed = await submit(chat());
  await bench.generated([CANARY]);
  await bench.ended(completed);
  await bench.ended(await submit(chat({ [CANARY]: CANARY })));
  const failed = await submit(chat({ stream: true }));
  await vi.waitFor(() => expect(bench.generations).toHaveLength(2), WAIT);
  const generation = await bench.begun([CANARY]);
  generation.end({ job: generation.job, kind: 'engine_failed', message: CANARY });
  await bench.ended(failed);
  bench.signingFails = true;
  const unsigned = await submit(chat());
  await vi.waitFor(() => expect(bench.generations).toHaveLength(3), WAIT);
  await bench.generated([CANARY]);
  await bench.ended(unsigned);
  expect(bench.events.map(({ end }) => (end.kind === 'failed' ? end.failure.code : end.kind))).toEqual([
    'completed',
    'refused',
    'engine_failed',
    'signing_failed',
  ]);
  expect(JSON.stringify([bench.sent, bench.events])).not.toContain(CANARY);
  expect(Buffer.concat(bench.frames).includes(CANARY)).toBe(false);
});

describe('a job fails', () => {
  const failureOf = async (bench: E2eBench, context: JobContext) => {
    const { end } = await bench.ended(context.job_id);
    expect(bench.payloads(context.job_id)).toEqual([]);
    return end.kind === 'failed' ? end.failure : end.kind;
  };

  test.each<[string, Partial<JobContext>]>([
    ['model', { model: 'pico ' }],
    ['endpoint', { endpoint: '/v1/responses' }],
    ['stream', { stream: true }],
    ['limit', { max_tokens: 99 }],
    ['request', { request_sha256: '0'.repeat(64) }],
  ])("whose context has another %s than the client's", async (what, changes) => {
    const context = bench.submit(bench.seal(chat()), { context: changes });
    expect(await failureOf(bench, context)).toEqual({ code: what === 'model' ? 'model_not_loaded' : 'bad_context' });
  });

  test('for another candidate, or with the encapsulated key of another', async () => {
    expect(await failureOf(bench, bench.submit(bench.seal(chat()), { recipient: 0 }))).toEqual({ code: 'bad_context' });
    expect(await failureOf(bench, bench.submit(bench.seal(chat()), { recipient: 7 }))).toEqual({ code: 'bad_context' });
    expect(await failureOf(bench, bench.submit(bench.seal(chat()), { enc: new Uint8Array(32) }))).toEqual({ code: 'bad_context' });
    expect(await failureOf(bench, bench.submit(bench.seal(chat(), { key: sealingKey() })))).toEqual({ code: 'unknown_key' });
  });

  test('altered at any byte', async () => {
    const sealed = bench.seal(chat());
    for (const at of [0, 4, 9, Math.floor(sealed.bytes.length / 2), sealed.bytes.length - 1]) {
      const bytes = sealed.bytes.slice();
      bytes[at] = (bytes[at] as number) ^ 1;
      expect(await failureOf(bench, bench.submit(sealed, { bytes }))).toEqual({ code: 'unsealing_failed' });
    }
    expect(await failureOf(bench, bench.submit(sealed, { bytes: sealed.bytes.subarray(0, -1) }))).toEqual({ code: 'unsealing_failed' });
  });

  test.each<[string, SealOptions['terms']]>([
    ['late', { issued_at: NOW - 300_000, expires_at: NOW - CLOCK_TOLERANCE_MS - 1 }],
    ['early', { issued_at: NOW + CLOCK_TOLERANCE_MS + 1, expires_at: NOW + 300_000 }],
    ['longer than a key lives', { expires_at: NOW + 3_600_001 }],
  ])('that is sealed too %s', async (_what, terms) => {
    expect(await failureOf(bench, bench.submit(bench.seal(chat(), { ...(terms === undefined ? {} : { terms }) })))).toEqual({
      code: 'expired',
    });
  });

  test('when it comes again, under another job id, or with a nonce that came before', async () => {
    const sealed = bench.seal(chat());
    const first = bench.submit(sealed);
    await bench.generated(['Hi']);
    await bench.ended(first.job_id);
    expect(await failureOf(bench, bench.submit(sealed))).toEqual({ code: 'replayed' });
    const again = bench.seal(chat(), { terms: { nonce: sealed.context.nonce } });
    expect(await failureOf(bench, bench.submit(again))).toEqual({ code: 'replayed' });
    expect(bench.generations).toHaveLength(1);
  });
});

test('a clock that was ahead and is set back leaves a replaced key without effect', async () => {
  let now = NOW;
  const bench = new E2eBench(constraints, { now: () => now });
  const lasting = { issued_at: NOW, expires_at: NOW + 3_600_000 };
  const ahead = bench.seal(chat(), { key: bench.oldKey, terms: lasting });
  now = NOW + 3_000_000;
  const first = bench.submit(ahead, { context: lasting });
  await bench.generated(['Hi']);
  expect((await bench.ended(first.job_id)).end.kind).toBe('completed');
  now = NOW;
  expect((await bench.ended(bench.submit(ahead, { context: lasting }).job_id)).end).toMatchObject({ failure: { code: 'replayed' } });
  // The agent replaces its key after each jump of the clock.
  const sealed = bench.seal(chat());
  const context = bench.submit(sealed);
  await vi.waitFor(() => expect(bench.generations).toHaveLength(2), WAIT);
  await bench.generated(['Hi']);
  expect((await bench.ended(context.job_id)).end.kind).toBe('completed');
});

test('the old key opens requests in its grace time', async () => {
  const sealed = bench.seal(chat(), { key: bench.oldKey });
  const context = await bench.answered(sealed, ['Hi']);
  expect(bench.open(sealed, context).status).toBe(200);
});

test('a cancelled stream is ended and signed at the part that was written', async () => {
  const sealed = bench.seal(chat({ stream: true }));
  const context = bench.submit(sealed);
  await bench.begun(['Hello', ' there']);
  await vi.waitFor(() => expect(bench.payloads(context.job_id).length).toBeGreaterThan(0), WAIT);
  bench.jobs.handle({ type: 'cancel', job_id: context.job_id });
  expect((await bench.ended(context.job_id)).end.kind).toBe('completed');
  const { body, receipt } = bench.open(sealed, context);
  expect(body).toContain('Hello');
  expect(receipt).toMatchObject({ finish_reason: 'cancelled', usage: { completion_tokens: 2 } });
});

test('a cancelled job without output fails', async () => {
  const context = bench.submit(bench.seal(chat()));
  await bench.begun(['Hello']);
  bench.jobs.handle({ type: 'cancel', job_id: context.job_id });
  await bench.ended(context.job_id);
  expect(bench.sent.at(-1)).toMatchObject({ type: 'job_failed', failure: { code: 'cancelled' } });
});

test('text is collected for a while, and stream frames are padded', async () => {
  const sealed = bench.seal(chat({ stream: true }));
  const context = bench.submit(sealed);
  const generation = await bench.begun(['a']);
  for (let i = 0; i < 20; i++) {
    generation.push({ text: 'b', tokens: 1 });
    await new Promise((resolve) => setImmediate(resolve));
  }
  await bench.generated([]);
  await bench.ended(context.job_id);
  const bytes = Buffer.concat(bench.payloads(context.job_id));
  const lengths: number[] = [];
  for (let at = 32; at < bytes.length; ) {
    const length = bytes.readUIntBE(at + 1, 3);
    lengths.push(length - 16);
    at += 4 + length;
  }
  expect(lengths.every((length) => length % E2E_STREAM_PADDING_BYTES === 0)).toBe(true);
  expect(lengths.length).toBeLessThan(20);
  expect(bench.open(sealed, context).body.match(/"b"/g)).toHaveLength(20);
});

test('steady text fills stream frames, with little padding', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const bench = new E2eBench(constraints);
    const sealed = bench.seal(chat({ stream: true }));
    const context = bench.submit(sealed);
    const generation = await bench.begun(['a']);
    for (let i = 0; i < 64; i++) {
      generation.push({ text: 'b', tokens: 1 });
      await vi.advanceTimersByTimeAsync(20);
    }
    vi.useRealTimers();
    await bench.generated([]);
    await bench.ended(context.job_id);
    const { body } = bench.open(sealed, context);
    const sentBytes = bench.payloads(context.job_id).reduce((sum, { length }) => sum + length, 0);
    expect(body.match(/"b"/g)).toHaveLength(64);
    // The rest: nonce, head, final frame with its proof, and a frame's header and tag each 512 bytes.
    expect((sentBytes - 32 - 3072) / body.length).toBeLessThan(1.1);
  } finally {
    vi.useRealTimers();
  }
});

test('sends within its credit', async () => {
  const sealed = bench.seal(chat());
  const context = bench.submit(sealed, { credit: 100 });
  await bench.generated(['Hello']);
  const sentBytes = () => bench.payloads(context.job_id).reduce((sum, { length }) => sum + length, 0);
  await vi.waitFor(() => expect(sentBytes()).toBe(100), WAIT);
  expect(bench.events).toHaveLength(0);
  bench.jobs.handle({ type: 'credit', job_id: context.job_id, bytes: 1 << 20 });
  await bench.ended(context.job_id);
  expect(JSON.parse(bench.open(sealed, context).body)).toMatchObject({ choices: [{ message: { content: 'Hello' } }] });
});

test('prefixes are shared by a secret of the client, never by word of the coordinator', async () => {
  const scopes: (string | null)[] = [];
  const secret = (byte: number) => Buffer.alloc(32, byte).toString('base64url');
  for (const head of [{}, { cache_secret: secret(1) }, { cache_secret: secret(1) }, { cache_secret: secret(2) }]) {
    const context = bench.submit(bench.seal(chat(), { head }), { context: { cache_scope: toHex(new Uint8Array(16)) } });
    await vi.waitFor(() => expect(bench.generations).toHaveLength(scopes.length + 1), WAIT);
    await bench.generated(['Hi']);
    await bench.ended(context.job_id);
    scopes.push(bench.generations.at(-1)?.request.cacheScope ?? null);
  }
  expect(scopes[0]).toBeNull();
  expect(scopes[1]).toMatch(/^[0-9a-f]{32}$/);
  expect(scopes[2]).toBe(scopes[1]);
  expect(new Set(scopes).size).toBe(3);
});
