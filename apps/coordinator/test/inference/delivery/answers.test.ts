import { createHash, verify } from 'node:crypto';
import http from 'node:http';
import { connect } from 'node:net';
import { fromBase64, fromBase64Url, openReceipt, utf8 } from '@inference/protocol';
import { p256PublicKeyPem, verifyP256 } from '@inference/protocol/crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, type Harness, MODEL, startHarness } from '../../support/harness.js';
import { expectSignedStream } from '../../support/inference-calls.js';

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
  await harness.provider({ models: [MODEL] });
});
afterAll(() => harness.close());

/** Verifies a signature as a client without our code would, over the 64 hexadecimal digits of the hash. */
function verifiesByKey(x963Base64: string, hash: string, signature: string): boolean {
  return verify('sha256', utf8(hash), p256PublicKeyPem(fromBase64(x963Base64)), fromBase64(signature));
}

describe('a plain answer', () => {
  it('arrives unchanged with signature, receipt and provider headers', async () => {
    const response = await harness.chat();
    const body = Buffer.from(await response.arrayBuffer());
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(JSON.parse(body.toString()).choices[0].message.content).toBe('Hello from here.');
    const hash = createHash('sha256').update(body).digest('hex');
    const header = (name: string): string => response.headers.get(name) ?? '';
    expect(header('x-response-hash')).toBe(hash);
    expect(verifiesByKey(header('x-attestation-se-public-key'), hash, header('x-se-signature'))).toBe(true);
    const payload = Buffer.from(fromBase64Url(header('x-inference-receipt')));
    const statement = { payload: payload.toString('base64'), signature: header('x-inference-receipt-signature') };
    const receipt = openReceipt(statement, fromBase64(header('x-attestation-se-public-key')), verifyP256).value;
    expect(receipt).toMatchObject({ model: MODEL, response_sha256: hash, overrides: { max_tokens: 8192 } });
    expect(Object.fromEntries([...response.headers].filter(([name]) => name.startsWith('x-provider-')))).toEqual({
      'x-provider-attested': 'true',
      'x-provider-trust-level': 'self_signed',
      'x-provider-chip': 'Test M4',
      'x-provider-id': receipt.provider_id,
      'x-provider-model': 'Test16,1',
      'x-provider-serial': 'SERIAL0001',
      'x-provider-secure-enclave': 'false',
      'x-provider-mda-verified': 'false',
    });
    expect(header('x-attestation-device-serial')).toBe('SERIAL0001');
    expect(response.headers.get('x-inference-job-id')).toBeNull();
    expect(header('x-request-id')).toMatch(/^req_/);

    const kept = await harness.get(`/v1/receipts/${receipt.job_id}`);
    expect(await kept.json()).toMatchObject({ job_id: receipt.job_id, receipt: header('x-inference-receipt'), claims: receipt });
  });

  it("repeats the client's nonce in the receipt and accepts a body of any content type", async () => {
    const nonce = Buffer.alloc(32, 7).toString('base64url');
    const response = await harness.chat({}, { headers: { 'x-inference-nonce': nonce, 'content-type': 'text/plain' } });
    expect(response.status).toBe(200);
    const receipt = JSON.parse(Buffer.from(response.headers.get('x-inference-receipt') ?? '', 'base64url').toString());
    expect(receipt.client_nonce).toBe(nonce);
  });
});

describe('a streamed answer', () => {
  it('is relayed byte for byte, then signed in an event, then terminated', async () => {
    const response = await harness.chat({ stream: true });
    const text = await response.text();
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    expect(response.headers.get('x-inference-job-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(response.headers.get('x-se-signature')).toBeNull();
    const events = text.trimEnd().split('\n\n');
    expect(events.at(-1)).toBe('data: [DONE]');
    const signature = JSON.parse((events.at(-2) ?? '').slice('data: '.length));
    expect(signature.choices).toEqual([]);
    const signed = text.slice(0, text.indexOf(events.at(-2) ?? ''));
    const hash = createHash('sha256').update(signed).digest('hex');
    expect(signature.response_hash).toBe(hash);
    expect(verifiesByKey(response.headers.get('x-attestation-se-public-key') ?? '', hash, signature.se_signature)).toBe(true);
    const content = events.slice(0, -2).map((event) => JSON.parse(event.slice('data: '.length)).choices[0].delta.content ?? '');
    expect(content.join('')).toBe('Hello from here.');
  });

  it('has hash, signature and receipt as trailers when the client requests them', async () => {
    const trailers = await new Promise<NodeJS.Dict<string>>((resolve, reject) => {
      const request = http.request(
        `${harness.url}/v1/chat/completions`,
        { method: 'POST', headers: { authorization: `Bearer ${harness.apiKey}`, te: 'trailers' } },
        (response) => response.resume().on('end', () => resolve(response.trailers)),
      );
      request.on('error', reject);
      request.end(JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: 'hi' }] }));
    });
    expect(Object.keys(trailers).sort()).toEqual([
      'x-inference-receipt',
      'x-inference-receipt-signature',
      'x-response-hash',
      'x-se-signature',
    ]);
  });
});

describe('a short answer to a long request', () => {
  let own: Harness;
  beforeAll(async () => {
    own = await startHarness();
    await own.provider({
      onJob: async (job) => {
        job.accept();
        for (const part of job.render(['Hi'])) {
          for (let at = 0; at < part.length; at += 65_536) await job.pushWithinCredit(part.subarray(at, at + 65_536));
        }
        job.push(new Uint8Array(), true);
        job.complete();
      },
    });
  });
  afterAll(() => own.close());

  const tools = Array.from({ length: 1024 }, (_, index) => ({ type: 'function', name: `f${index}` }));

  it.each<[string, string, object]>([
    ['instructions', '/v1/responses', { input: 'hi', instructions: 'i'.repeat(300_000), max_output_tokens: 1 }],
    ['tools', '/v1/responses', { input: 'hi', tools, max_output_tokens: 1 }],
    ['the prompt', '/v1/completions', { prompt: '\u0085'.repeat(100_000), echo: true, max_tokens: 1 }],
  ])('may repeat %s in its stream', async (_what, path, members) => {
    const { signed } = await expectSignedStream(await own.post(path, { model: MODEL, stream: true, ...members }));
    expect(signed.length).toBeGreaterThan(300_000);
  });
});

describe('refusals', () => {
  it('require a key, in either header', async () => {
    const none = await harness.get('/v1/models', null);
    expect(none.status).toBe(401);
    expect(await errorOf(none)).toMatchObject({ type: 'invalid_request_error', code: 'invalid_api_key', param: null });
    expect((await harness.get('/v1/models', `service-${'A'.repeat(43)}`)).status).toBe(401);
    expect((await harness.get('/v1/models', harness.adminKey)).status).toBe(403);
    expect((await harness.get('/admin/v1/providers')).status).toBe(403);
    expect((await fetch(`${harness.url}/v1/models`, { headers: { 'x-api-key': harness.apiKey } })).status).toBe(200);
  });

  it('apply to a revoked key at once', async () => {
    const { addKey, newKeyText } = await import('../../../src/database/accounts/api-key-repository.js');
    const account = await harness.app.database.selectFrom('accounts').select('id').executeTakeFirstOrThrow();
    const text = newKeyText();
    const id = await addKey(harness.app.database, { accountId: account.id, kind: 'api', text, now: Date.now() });
    expect((await harness.get('/v1/models', text)).status).toBe(200);
    await harness.app.apiKeyCache.revoke(id);
    expect((await harness.get('/v1/models', text)).status).toBe(401);
  });

  it('have the public error shape for bad JSON, unknown models, unknown paths, wrong methods and large bodies', async () => {
    const post = (body: string): Promise<Response> =>
      fetch(`${harness.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${harness.apiKey}` }, body });
    const bad = await post('{"model": ');
    expect([bad.status, (await errorOf(bad)).code]).toEqual([400, 'invalid_json']);
    const empty = await post('');
    expect([empty.status, (await errorOf(empty)).code]).toEqual([400, 'invalid_json']);
    const brotli = await harness.post('/v1/chat/completions', '{}', { 'content-encoding': 'br' });
    expect([brotli.status, (await errorOf(brotli)).code]).toEqual([415, 'unsupported_media_type']);
    expect(brotli.headers.get('accept-encoding')).toBe('gzip, deflate');
    const unzipped = await harness.post('/v1/chat/completions', '{}', { 'content-encoding': 'gzip' });
    expect([unzipped.status, (await errorOf(unzipped)).code]).toEqual([400, 'invalid_request']);
    const plain = await harness.post('/v1/chat/completions', '{}', { 'content-encoding': 'identity' });
    expect((await errorOf(plain)).param).toBe('model');
    const unknown = await harness.chat({ model: 'no/such-model' });
    expect([unknown.status, (await errorOf(unknown)).code]).toEqual([404, 'model_not_found']);
    const path = await harness.get('/v1/nothing');
    expect([path.status, (await errorOf(path)).code]).toEqual([404, 'not_found']);
    const method = await harness.get('/v1/chat/completions');
    expect([method.status, method.headers.get('allow')]).toEqual([405, 'POST']);
    const big = await post(`{"model":"${'x'.repeat(9_000_000)}"}`);
    expect([big.status, (await errorOf(big)).code]).toEqual([413, 'body_too_large']);
    const nonce = await harness.chat({}, { headers: { 'x-inference-nonce': 'short' } });
    expect([nonce.status, (await errorOf(nonce)).param]).toEqual([400, 'X-Inference-Nonce']);
    const serial = await harness.chat({ provider_serial: 'NOBODY' });
    expect([serial.status, (await errorOf(serial)).code]).toEqual([503, 'provider_not_available']);
  });

  it('have the same shape for malformed addresses and malformed HTTP', async () => {
    const address = await fetch(`${harness.url}/v1/models/%zz`, { headers: { 'x-api-key': harness.apiKey } });
    expect([address.status, (await errorOf(address)).code]).toEqual([400, 'invalid_request']);
    expect(address.headers.get('request-id')).toMatch(/^req_/);
    const inMessages = await fetch(`${harness.url}/v1/messages/%zz`);
    expect(await inMessages.json()).toMatchObject({ type: 'error', request_id: inMessages.headers.get('x-request-id') });
    const text = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(harness.url).port), '127.0.0.1', () => socket.write('NOT HTTP\r\n\r\n'));
      let received = '';
      socket.on('data', (data) => {
        received += String(data);
      });
      socket.on('close', () => resolve(received));
    });
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toMatch(/\r\nrequest-id: req_[0-9a-f]{32}\r\n/);
    expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toMatchObject({ error: { code: 'invalid_request', param: null } });
  });

  it('do not apply to health and the base address without a key', async () => {
    expect((await harness.get('/health', null)).status).toBe(200);
    expect((await fetch(harness.url, { method: 'HEAD' })).status).toBe(200);
  });
});

describe('public data', () => {
  it('lists models and shows attestation with the signed statements', async () => {
    const list = (await (await harness.get('/v1/models')).json()) as { object: string; data: Record<string, unknown>[] };
    expect(list).toMatchObject({ object: 'list', data: [{ id: MODEL, object: 'model' }] });
    expect(list.data[0]?.metadata).toEqual({
      model_type: 'text',
      quantization: '8bit',
      provider_count: 1,
      attested_providers: 1,
      hardware_providers: 0,
      trust_level: 'self_signed',
      display_name: MODEL,
    });
    expect(await (await harness.get(`/v1/models/${MODEL}`)).json()).toMatchObject(list.data[0] ?? {});
    const limits = {
      context_length: 4096,
      max_output_tokens: 4096,
      top_provider: { context_length: 4096, max_completion_tokens: 4096, is_moderated: false },
    };
    expect(list.data[0]).toMatchObject(limits);
    expect(await (await harness.get(`/v1/models/${MODEL}`)).json()).toMatchObject(limits);
    // A provider with a longer context connects and disconnects.
    const long = await harness.provider({
      register: (register) => ({ ...register, models: register.models.map((offer) => ({ ...offer, context_length: 32_768 })) }),
    });
    const contextLength = async () =>
      ((await (await harness.get(`/v1/models/${MODEL}`)).json()) as { context_length: number }).context_length;
    await harness.until(async () => (await contextLength()) === 32_768);
    long.close();
    await harness.until(async () => (await contextLength()) === 4096);
    expect((await harness.get('/v1/models/none')).status).toBe(404);
    const feed = (await (await harness.get('/v1/providers/attestation', null)).json()) as { providers: Record<string, unknown>[] };
    expect(feed.providers[0]).toMatchObject({
      status: 'online',
      secure_enclave: false,
      mda_verified: false,
      gpu_cores: 38,
      models: [MODEL],
    });
    expect(feed.providers[0]).not.toHaveProperty('mda_cert_chain_b64');
    const one = (query: string): Promise<Response> => harness.get(`/v1/providers/attestation?provider_id=${query}`, null);
    expect(await (await one(String(feed.providers[0]?.provider_id))).json()).toMatchObject({ providers: [{ models: [MODEL] }] });
    expect(await (await one('0'.repeat(32))).json()).toMatchObject({ providers: [], trust_anchor: { simulated: false } });
    expect((await one('nonsense')).status).toBe(400);
    expect(feed).toMatchObject({
      apple_root_ca_url: 'https://www.apple.com/certificateauthority/private/',
      apple_enterprise_root_ca: 'Apple Enterprise Attestation Root CA',
      verification_instructions: expect.stringContaining('NOT PROVED'),
      trust_anchor: { common_name: 'Apple Enterprise Attestation Root CA', simulated: false },
    });
    expect(feed.providers[0]).toMatchObject({
      attested: true,
      simulated: true,
      mda_binding: 'none',
      last_challenge: { nonce: expect.any(String) },
    });
  });
});
