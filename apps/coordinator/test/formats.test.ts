import { createHash, verify } from 'node:crypto';
import { type Endpoint, fromBase64, fromBase64Url, type Receipt, utf8 } from '@inference/protocol';
import { p256PublicKeyPem } from '@inference/protocol/crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, type Harness, MODEL, startHarness } from './harness.js';

const messages = [{ role: 'user', content: 'hi' }];
const BODIES = {
  '/v1/chat/completions': { model: MODEL, messages },
  '/v1/completions': { model: MODEL, prompt: 'hi' },
  '/v1/responses': { model: MODEL, input: 'hi' },
  '/v1/messages': { model: MODEL, messages, max_tokens: 64 },
} as const;
type Streaming = keyof typeof BODIES;
const STREAMING = Object.keys(BODIES) as Streaming[];

const ID_PREFIXES: Record<Streaming, string> = {
  '/v1/chat/completions': 'chatcmpl-',
  '/v1/completions': 'cmpl-',
  '/v1/responses': 'resp_',
  '/v1/messages': 'msg_',
};

interface AnthropicBody {
  readonly type: string;
  readonly error: { readonly type: string; readonly message: string };
  readonly request_id: string | null;
}

/** The response as a client without our code checks it: the signature over the digits of the hash of these bytes. */
function expectSigned(response: Response, signed: string | Buffer, said: { hash: string; signature: string }): void {
  const hash = createHash('sha256').update(signed).digest('hex');
  const key = p256PublicKeyPem(fromBase64(response.headers.get('x-attestation-se-public-key') ?? ''));
  expect(said.hash).toBe(hash);
  expect(verify('sha256', utf8(hash), key, fromBase64(said.signature))).toBe(true);
}

async function expectSignedPlain(response: Response, endpoint: Endpoint): Promise<Record<string, unknown>> {
  const body = Buffer.from(await response.arrayBuffer());
  expect(response.status).toBe(200);
  const header = (name: string): string => response.headers.get(name) ?? '';
  expectSigned(response, body, { hash: header('x-response-hash'), signature: header('x-se-signature') });
  const receipt = JSON.parse(Buffer.from(fromBase64Url(header('x-inference-receipt'))).toString()) as Receipt;
  expect(receipt.endpoint).toBe(endpoint);
  return JSON.parse(body.toString());
}

/** Splits a stream at its signature, whichever way the format carries it, and checks it. Returns the signed bytes and what follows them. */
async function expectSignedStream(response: Response): Promise<{ signed: string; end: string }> {
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(response.headers.get('x-inference-job-id')).toMatch(/^[0-9a-f-]{36}$/);
  const text = await response.text();
  const blocks = text.split(/(?<=\n\n)/);
  const at = blocks.findIndex((block) => block.includes('"se_signature"'));
  expect(at).toBeGreaterThan(0);
  const signature = JSON.parse((blocks[at] ?? '').replace(/^(data:|: inference-signature) /, ''));
  const signed = blocks.slice(0, at).filter((block) => !block.startsWith(':'));
  expectSigned(response, signed.join(''), { hash: signature.response_hash, signature: signature.se_signature });
  return { signed: signed.join(''), end: blocks.slice(at + 1).join('') };
}

describe('every endpoint', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness();
    await harness.provider();
  });
  afterAll(() => harness.close());

  it.each(STREAMING)('%s answers whole and signed', async (endpoint) => {
    const answer = await expectSignedPlain(await harness.post(endpoint, BODIES[endpoint]), endpoint);
    expect(answer.id).toMatch(new RegExp(`^${ID_PREFIXES[endpoint]}[0-9a-f]{32}$`));
    expect(JSON.stringify(answer)).toContain('Hello from here.');
  });

  it.each(STREAMING)('%s streams, and ends with its signature', async (endpoint) => {
    const { signed, end } = await expectSignedStream(await harness.post(endpoint, { ...BODIES[endpoint], stream: true }));
    expect(signed).toContain(' from');
    expect(signed).toContain(`"${ID_PREFIXES[endpoint]}`);
    expect(end).toBe(endpoint === '/v1/messages' ? '' : 'data: [DONE]\n\n');
  });

  it('/v1/messages/count_tokens counts and generates nothing', async () => {
    const endpoint = '/v1/messages/count_tokens';
    const response = await harness.post(endpoint, { model: MODEL, messages });
    expect(await expectSignedPlain(response, endpoint)).toEqual({ input_tokens: 7 });
    const receipt = JSON.parse(Buffer.from(response.headers.get('x-inference-receipt') ?? '', 'base64url').toString()) as Receipt;
    expect(receipt).toMatchObject({ overrides: {}, usage: { completion_tokens: 0 } });
  });

  it('/v1/responses answers a body with messages as a chat completion', async () => {
    const answer = await expectSignedPlain(await harness.post('/v1/responses', BODIES['/v1/chat/completions']), '/v1/responses');
    expect(answer).toMatchObject({ object: 'chat.completion', choices: [{ message: { content: 'Hello from here.' } }] });
    expect(answer.id).toMatch(/^chatcmpl-/);
    const { end } = await expectSignedStream(await harness.post('/v1/responses', { ...BODIES['/v1/chat/completions'], stream: true }));
    expect(end).toBe('data: [DONE]\n\n');
  });

  it('tolerates versions, betas and a query, and takes either kind of key', async () => {
    const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a-2025-01-01,b-2099-01-01' };
    expect((await harness.post('/v1/messages?beta=true', BODIES['/v1/messages'], headers)).status).toBe(200);
    for (const key of [{ 'x-api-key': harness.apiKey }, { authorization: `Bearer ${harness.apiKey}` }]) {
      const response = await fetch(`${harness.url}/v1/messages`, {
        method: 'POST',
        headers: { ...key },
        body: JSON.stringify(BODIES['/v1/messages']),
      });
      expect(response.status).toBe(200);
      const id = response.headers.get('request-id');
      expect(id).toMatch(/^req_[0-9a-f]{32}$/);
      expect(response.headers.get('x-request-id')).toBe(id);
    }
  });
});

describe('errors under /v1/messages', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness({ jobTimings: { queueMs: 50 }, config: { maxRequestBytes: 20_000 } });
    await harness.provider({ slots: 1, onJob: (job) => job.fail({ code: 'busy' }) });
    await harness.provider({ models: ['picky'], onJob: (job) => job.fail({ code: 'unsupported', param: 'tools[0].strict' }) });
  });
  afterAll(() => harness.close());

  async function expectError(response: Response, status: number, type: string): Promise<string> {
    const body = (await response.json()) as AnthropicBody;
    expect([response.status, body.type, body.error.type]).toEqual([status, 'error', type]);
    expect(body.request_id).toBe(response.headers.get('request-id'));
    expect(response.headers.get('x-request-id')).toBe(body.request_id);
    return body.error.message;
  }

  it('have the shape of the Messages format, and name the request', async () => {
    const body = BODIES['/v1/messages'];
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
      await expectError(await harness.post(path, body, { 'x-api-key': '' }), 401, 'authentication_error');
      await expectError(await harness.post(path, body, { 'x-api-key': 'wrong' }), 401, 'authentication_error');
      await expectError(await harness.post(path, body, { 'x-api-key': harness.adminKey }), 403, 'permission_error');
      await expectError(await harness.post(path, '{"model": '), 400, 'invalid_request_error');
      await expectError(await harness.post(path, { ...body, messages: 7 }), 400, 'invalid_request_error');
      await expectError(await harness.post(path, 'x'.repeat(20_001)), 413, 'request_too_large');
      await expectError(await harness.post(path, { ...body, model: 'no/such' }), 404, 'not_found_error');
      const method = await harness.get(path);
      expect(method.headers.get('allow')).toBe('POST');
      await expectError(method, 405, 'invalid_request_error');
    }
    await expectError(await harness.post('/v1/messages/batches?limit=1', {}), 404, 'not_found_error');
    const missing = await harness.post('/v1/messages', { model: MODEL, messages });
    expect(await expectError(missing, 400, 'invalid_request_error')).toContain('max_tokens');
  });

  it('say that nobody is free with their own status', async () => {
    for (const stream of [false, true]) {
      const response = await harness.post('/v1/messages', { ...BODIES['/v1/messages'], stream });
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      await expectError(response, 529, 'overloaded_error');
      expect((await harness.post('/v1/responses', { ...BODIES['/v1/responses'], stream })).status).toBe(503);
    }
  });

  it('name the field that a provider does not offer', async () => {
    const refused = await harness.post('/v1/messages', { ...BODIES['/v1/messages'], model: 'picky' });
    expect(await expectError(refused, 400, 'invalid_request_error')).toContain('tools[0].strict');
    const chat = await harness.chat({ model: 'picky' });
    expect(chat.status).toBe(400);
    expect(await errorOf(chat)).toMatchObject({ code: 'unsupported_parameter', param: 'tools[0].strict' });
  });

  it('leave the other paths as they were', async () => {
    const response = await harness.post('/v1/responses', BODIES['/v1/responses'], { 'x-api-key': 'wrong' });
    expect(await errorOf(response)).toMatchObject({ code: 'invalid_api_key' });
    expect((await harness.get('/v1/messagesque')).headers.get('request-id')).toMatch(/^req_/);
    expect(await errorOf(await harness.get('/v1/messagesque'))).toMatchObject({ code: 'not_found' });
  });
});

describe('a stream that is silent for long', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  it.each(STREAMING)('of %s is committed and kept alive, and its signature still verifies', async (endpoint) => {
    harness = await startHarness({ jobTimings: { commitMs: 20, keepAliveMs: 20 } });
    let go: () => void = () => {};
    await harness.provider({
      onJob: (job) => {
        job.accept();
        go = () => {
          for (const part of job.render(['late'])) if (part.length > 0) job.push(part);
          job.push(new Uint8Array(), true);
          job.complete();
        };
      },
    });
    const response = await harness.post(endpoint, { ...BODIES[endpoint], stream: true });
    const copy = response.clone();
    setTimeout(() => go(), 150);
    expect((await expectSignedStream(response)).signed).toContain('late');
    expect((await copy.text()).match(/^: keep-alive\n\n/gm)?.length).toBeGreaterThanOrEqual(2);
  });

  it.each(STREAMING)("of %s tells of a failure in the format's own event", async (endpoint) => {
    harness = await startHarness({ jobTimings: { commitMs: 20 } });
    await harness.provider({
      onJob: (job) => {
        job.accept();
        setTimeout(() => job.fail({ code: 'engine_failed' }), 80);
      },
    });
    const response = await harness.post(endpoint, { ...BODIES[endpoint], stream: true });
    expect(response.status).toBe(200);
    const text = await response.text();
    const event = /^(?:event: (\w+)\n)?data: (.*)\n\n$/.exec(text);
    const data = JSON.parse(event?.[2] ?? 'null');
    expect(event?.[1]).toBe(endpoint === '/v1/messages' || endpoint === '/v1/responses' ? 'error' : undefined);
    if (endpoint === '/v1/messages') {
      expect(data).toMatchObject({ error: { type: 'api_error' }, request_id: response.headers.get('request-id') });
    } else expect(data.error).toMatchObject({ code: 'provider_failed' });
  });
});

describe('GET /openapi.json', () => {
  it('describes every public address and refers only to what it holds', async () => {
    const harness = await startHarness();
    try {
      const response = await harness.get('/openapi.json', null);
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      const text = await response.text();
      const document = JSON.parse(text) as {
        info: object;
        paths: Record<string, Record<string, unknown>>;
        components: { schemas: object };
      };
      expect(document.info).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
      expect(Object.keys(document.paths).sort()).toEqual(
        [
          ...STREAMING,
          '/v1/messages/count_tokens',
          '/v1/models',
          '/v1/models/{id}',
          '/v1/receipts/{job_id}',
          '/v1/providers/attestation',
          '/health',
          '/',
          '/openapi.json',
        ].sort(),
      );
      for (const [, name = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)) {
        expect(document.components.schemas).toHaveProperty(name);
      }
      for (const [path, operations] of Object.entries(document.paths)) {
        const [method = ''] = Object.keys(operations);
        const reached = await fetch(harness.url + path.replace(/\{\w+\}/, 'x'), { method: method.toUpperCase() });
        expect([path, reached.status]).toEqual([path, 'security' in (operations[method] as object) ? 200 : 401]);
      }
    } finally {
      await harness.close();
    }
  });

  it('is true of what the models and attestation addresses answer', async () => {
    const { Compile } = await import('typebox/compile');
    const { SCHEMAS } = await import('../src/routes/openapi-paths.js');
    const harness = await startHarness();
    try {
      await harness.provider();
      const answer = await harness.post('/v1/messages', BODIES['/v1/messages']);
      const receipt = JSON.parse(Buffer.from(answer.headers.get('x-inference-receipt') ?? '', 'base64url').toString()) as Receipt;
      const described = [
        ['ModelList', '/v1/models'],
        ['Model', `/v1/models/${MODEL}`],
        ['Attestations', '/v1/providers/attestation'],
        ['SignedReceipt', `/v1/receipts/${receipt.job_id}`],
        ['Health', '/health'],
        ['Service', '/'],
      ] as const;
      for (const [name, path] of described) {
        const schema = Compile(SCHEMAS[name]);
        const body = await (await harness.get(path)).json();
        expect([name, [...schema.Errors(body)]]).toEqual([name, []]);
      }
    } finally {
      await harness.close();
    }
  });
});
