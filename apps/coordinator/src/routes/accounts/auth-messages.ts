/** Converts requests for better-auth's handler, and its answers to responses in the coordinator's error format. */
import { apiError, type ErrorCode } from '@inference/formats';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CLIENT_ADDRESS_HEADER } from '../../accounts/auth.js';
import { headersOf } from '../plugins/console-api.js';
import { hasBearer } from '../plugins/console-origin.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { sendError } from '../plugins/send-error.js';

/** Request headers that better-auth does not get, because Fastify has already evaluated them. */
const REMOVED_HEADERS = [
  'content-length',
  'transfer-encoding',
  'connection',
  'expect',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
];

export function webRequest(request: FastifyRequest, origin: string, method: string = request.method): Request {
  const body = bytesOf(request);
  return new Request(origin + request.url, {
    method,
    headers: authHeaders(request),
    ...(method === 'GET' ? {} : { body: body.length === 0 ? '{}' : Buffer.from(body) }),
  });
}

export function authHeaders(request: FastifyRequest): Headers {
  const headers = headersOf(request);
  headers.set(CLIENT_ADDRESS_HEADER, request.ip);
  // Requests with a bearer token skip the check against other origins, so their cookies must not count.
  if (hasBearer(request)) headers.delete('cookie');
  for (const name of REMOVED_HEADERS) headers.delete(name);
  return headers;
}

/** Response headers of better-auth that the client gets, besides cookies. */
const PASSED_HEADERS = ['content-type', 'location', 'pragma'];

export async function sendAnswer(answer: Response, reply: FastifyReply): Promise<void> {
  const cookies = answer.headers.getSetCookie();
  if (cookies.length > 0) reply.header('set-cookie', cookies);
  const body = await answer.text();
  if (answer.status >= 400) return sendError(reply, apiErrorOf(answer, body));
  for (const name of PASSED_HEADERS) {
    const value = answer.headers.get(name);
    if (value !== null) reply.header(name, value);
  }
  reply.code(answer.status).send(withoutToken(body));
}

/** Removes session tokens, which better-auth puts into `token` or `session`. Only HttpOnly cookies may contain them. */
function withoutToken(body: string): string {
  if (body === '') return '{}';
  const value: unknown = JSON.parse(body);
  if (typeof value !== 'object' || value === null || !('token' in value || 'session' in value)) return body;
  const { token: _token, session: _session, ...rest } = value as Readonly<Record<string, unknown>>;
  return JSON.stringify(rest);
}

/** Converts an error response of better-auth. Retains the message, if any. */
function apiErrorOf({ status, headers }: Response, body: string) {
  const retryAfter = headers.get('retry-after');
  return apiError(codeOf(status), { ...messageOf(body), ...(retryAfter === null ? {} : { retryAfter: Number(retryAfter) }) });
}

function messageOf(body: string): { message?: string } {
  try {
    const value = JSON.parse(body) as { message?: unknown };
    return typeof value.message === 'string' && value.message !== '' ? { message: value.message } : {};
  } catch {
    return {};
  }
}

function codeOf(status: number): ErrorCode {
  switch (status) {
    case 401:
      return 'not_signed_in';
    case 403:
      return 'forbidden';
    case 404:
      return 'not_found';
    case 409:
      return 'conflict';
    case 415:
      return 'not_json';
    case 422:
      return 'invalid_request';
    case 429:
      return 'rate_limit_exceeded';
    default:
      return status < 500 ? 'invalid_request' : 'internal';
  }
}
