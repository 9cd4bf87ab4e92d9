import { APIError } from 'openai';
import { describe, expect, it } from 'vitest';
import { AdminDepositSchema } from '../src/console/admin-accounts.js';
import { anthropicError } from '../src/errors/anthropic-error.js';
import { ERRORS, type ErrorCode } from '../src/errors/error-table.js';
import { apiError, RequestError } from '../src/errors/errors.js';
import { jobFailureError } from '../src/errors/job-failure-error.js';
import { openAiError } from '../src/errors/open-ai-error.js';
import { errorAt } from '../src/formats.js';
import { schemaCheck } from '../src/schema-check.js';
import { sdkClient } from './sdk-client.js';

const codes = Object.keys(ERRORS) as ErrorCode[];
const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };

/** The error that the SDK throws, and the number of requests that it sent. */
async function thrown(code: ErrorCode, details: { retryAfter?: number } = {}) {
  const { status, headers, body } = openAiError(apiError(code, { ...details, param: 'model' }));
  const { client, requests } = sdkClient(() => new Response(body, { status, headers: { ...headers, 'retry-after-ms': '1' } }));
  const error = await client.chat.completions.create(request).catch((reason: unknown) => reason);
  if (!(error instanceof APIError)) throw new Error('the SDK threw no APIError');
  return { error, attempts: requests.length };
}

describe('every error', () => {
  it.each(codes)('%s has status, headers and all four members', (code) => {
    const { status, headers, body } = openAiError(apiError(code));
    const { error, ...rest } = JSON.parse(body);
    expect(rest).toEqual({});
    expect(Object.keys(error)).toEqual(['message', 'type', 'param', 'code']);
    expect(error).toEqual({ message: ERRORS[code].message, type: ERRORS[code].type, param: null, code: ERRORS[code].code });
    expect(status).toBe(ERRORS[code].status);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    for (const value of Object.values(headers)) expect(value).toMatch(/^[\x20-\x7e]+$/);
  });

  it.each(codes)('%s reaches the user of the SDK, which tries again only where that may help', async (code) => {
    const { error, attempts } = await thrown(code);
    expect(error).toMatchObject({ status: ERRORS[code].status, code: ERRORS[code].code, type: ERRORS[code].type, param: 'model' });
    expect(attempts).toBe(ERRORS[code].retry ? 3 : 1);
  });
});

describe('particular errors', () => {
  it.each<[ErrorCode, number, string]>([
    ['invalid_json', 400, 'invalid_json'],
    ['invalid_request', 400, 'invalid_request'],
    ['unsupported_parameter', 400, 'unsupported_parameter'],
    ['context_length_exceeded', 400, 'context_length_exceeded'],
    ['missing_api_key', 401, 'invalid_api_key'],
    ['invalid_api_key', 401, 'invalid_api_key'],
    ['insufficient_quota', 402, 'insufficient_quota'],
    ['forbidden', 403, 'forbidden'],
    ['model_not_found', 404, 'model_not_found'],
    ['not_found', 404, 'not_found'],
    ['method_not_allowed', 405, 'method_not_allowed'],
    ['body_too_large', 413, 'body_too_large'],
    ['rate_limit_exceeded', 429, 'rate_limit_exceeded'],
    ['internal', 500, 'internal_error'],
    ['provider_failed', 502, 'provider_failed'],
    ['bad_signature', 502, 'response_verification_failed'],
    ['no_provider', 503, 'no_provider'],
    ['overloaded', 503, 'overloaded'],
    ['provider_not_available', 503, 'provider_not_available'],
    ['shutting_down', 503, 'shutting_down'],
    ['provider_timeout', 504, 'provider_timeout'],
  ])('%s is %i %s', (code, status, publicCode) => {
    const shown = openAiError(apiError(code));
    expect(shown.status).toBe(status);
    expect(JSON.parse(shown.body).error.code).toBe(publicCode);
  });

  it('say when to come back, in whole seconds of at least 1', () => {
    expect(openAiError(apiError('no_provider')).headers['retry-after']).toBe('5');
    expect(openAiError(apiError('rate_limit_exceeded', { retryAfter: 2.2 })).headers['retry-after']).toBe('3');
    expect(openAiError(apiError('rate_limit_exceeded', { retryAfter: 0 })).headers['retry-after']).toBe('1');
    expect(openAiError(apiError('insufficient_quota')).headers).toMatchObject({ 'x-should-retry': 'false' });
  });

  it('ask for the Bearer scheme where a key is missing or wrong', () => {
    expect(openAiError(apiError('missing_api_key')).headers['www-authenticate']).toBe('Bearer');
    expect(openAiError(apiError('forbidden')).headers).not.toHaveProperty('www-authenticate');
  });

  it('name the encoding that bodies may have where another one came', () => {
    expect(openAiError(apiError('body_encoded')).headers['accept-encoding']).toBe('identity');
    expect(openAiError(apiError('not_json')).headers).not.toHaveProperty('accept-encoding');
  });

  it('tell of a prompt that is too long in the words by which clients of each format know it', () => {
    const error = apiError('context_length_exceeded', { tooLong: { limit: 2048, actual: 5009 } });
    expect(JSON.parse(anthropicError(error).body).error.message).toBe('prompt is too long: 5009 tokens > 2048 maximum');
    const { code, message } = JSON.parse(openAiError(error).body).error;
    expect(code).toBe('context_length_exceeded');
    expect(message).toMatch(/^This model's maximum context length is 2048 tokens\. However, the request came to 5009 tokens\./);
  });

  it('of a response that is too large name what to lower', () => {
    const tooLarge = (param: string) => jobFailureError({ code: 'unsupported', param }).message;
    expect(tooLarge('input')).toBe('input has too many texts for one response of this model. Send fewer per request.');
    for (const param of ['max_tokens', 'max_output_tokens'])
      expect(tooLarge(param)).toMatch(`${param} permits a response that is too large`);
    expect(tooLarge('dimensions')).toBe('dimensions is not offered for this model.');
  });

  it('have the shape that clients of their path understand', () => {
    const error = apiError('not_found');
    expect(errorAt('/v1/messages/batches', error, 'req_1')).toEqual(anthropicError(error, 'req_1'));
    expect(errorAt('/v1/messages', error)).toEqual(anthropicError(error));
    for (const path of ['/', '/v1/models', '/v1/messagesx', '/v1/responses'])
      expect(errorAt(path, error, 'req_1')).toEqual(openAiError(error));
    for (const path of ['/v1/models/m', '/v1/files']) expect(errorAt(path, error, 'req_1', true)).toEqual(anthropicError(error, 'req_1'));
    const wrongKey = apiError('invalid_api_key');
    expect(errorAt('/v1/models', wrongKey, 'req_1', true)).toEqual(anthropicError(wrongKey, 'req_1'));
    expect(errorAt('/v1/responses', wrongKey, 'req_1', true)).toEqual(openAiError(wrongKey));
  });

  it('can be thrown, and are bounded', () => {
    const error = new RequestError('invalid_request', 'stop', 'x'.repeat(10_000));
    expect(JSON.parse(openAiError(error).body).error).toEqual({
      message: 'x'.repeat(512),
      type: 'invalid_request_error',
      param: 'stop',
      code: 'invalid_request',
    });
  });
});

describe('a body of the console API', () => {
  const check = schemaCheck(AdminDepositSchema);
  const whole = { amount_micro_usd: 5, reference: 'a' };

  it.each([
    [{ amount: 5 }, 'amount', 'amount is not a known field. Known fields: amount_micro_usd, reference.'],
    [{ ...whole, 'line\nbreak': 1 }, null, 'The request body has an unknown field. Known fields: amount_micro_usd, reference.'],
    [{ ...whole, reference: undefined }, 'reference', /^reference (?:is required|must be a text)/],
    [[], null, 'The request body must be an object.'],
  ] as const)('%j is refused with its field', (body, param, message) => {
    let error: unknown;
    try {
      check(body);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toMatchObject({ param, message: typeof message === 'string' ? message : expect.stringMatching(message) });
  });
});
