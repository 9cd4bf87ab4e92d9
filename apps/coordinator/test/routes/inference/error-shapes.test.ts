import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, type Harness, MODEL, startHarness } from '../../support/harness.js';
import { BODIES, messages } from '../../support/inference-calls.js';

interface AnthropicBody {
  readonly type: string;
  readonly error: { readonly type: string; readonly message: string };
  readonly request_id: string | null;
}

describe('errors under /v1/messages', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness({ jobTimings: { queueMs: 50 }, config: { maxRequestBytes: 20_000 } });
    await harness.provider({ slots: 1, onJob: (job) => job.fail({ code: 'busy' }) });
    await harness.provider({ models: ['picky'], onJob: (job) => job.fail({ code: 'unsupported', param: 'tools[0].strict' }) });
    const tooLong = { code: 'context_length_exceeded', limit: 4096, actual: 5000 } as const;
    await harness.provider({ models: ['short'], onJob: (job) => job.fail(tooLong) });
  });
  afterAll(() => harness.close());

  async function expectError(response: Response, status: number, type: string): Promise<string> {
    const body = (await response.json()) as AnthropicBody;
    expect([response.status, body.type, body.error.type]).toEqual([status, 'error', type]);
    expect(body.request_id).toBe(response.headers.get('request-id'));
    expect(response.headers.get('x-request-id')).toBe(body.request_id);
    return body.error.message;
  }

  it('have the Messages format, and name the request', async () => {
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

  it('have their own status when no provider is free', async () => {
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

  it('report a too long prompt in the wording that coding agents look for', async () => {
    const refused = await harness.post('/v1/messages', { ...BODIES['/v1/messages'], model: 'short', stream: true });
    expect(await expectError(refused, 400, 'invalid_request_error')).toBe('prompt is too long: 5000 tokens > 4096 maximum');
    expect((await errorOf(await harness.chat({ model: 'short' }))).code).toBe('context_length_exceeded');
  });

  it('leave other paths unchanged', async () => {
    const response = await harness.post('/v1/responses', BODIES['/v1/responses'], { 'x-api-key': 'wrong' });
    expect(await errorOf(response)).toMatchObject({ code: 'invalid_api_key' });
    expect((await harness.get('/v1/messagesque')).headers.get('request-id')).toMatch(/^req_/);
    expect(await errorOf(await harness.get('/v1/messagesque'))).toMatchObject({ code: 'not_found' });
  });
});
