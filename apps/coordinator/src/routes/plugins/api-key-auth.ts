/** Authentication by API key, from `Authorization: Bearer` or `x-api-key`, depending on the client. */
import { apiError, RequestError } from '@inference/formats';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { ApiKeyCache } from '../../database/accounts/api-key-cache.js';
import type { ApiKey } from '../../database/accounts/api-key-repository.js';
import type { ApiKeyKind } from '../../database/tables.js';
import { networkOf } from '../../limits/network-address.js';
import type { RateLimits } from './rate-limits.js';
import { sendError } from './send-error.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set where {@link requireKey} guards a route. */
    apiKey: ApiKey | null;
    /** Set by guards that admit sessions. */
    sessionAccountId: string | null;
  }
}

export interface ApiKeyAuth {
  readonly apiKeyCache: ApiKeyCache;
  readonly limits: RateLimits;
  readonly now: () => number;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Guard for valid keys of a kind within their limits, before the body is read.
 * 401: no key, or an unknown, revoked or expired key. 403: a key of the other kind, or a suspended account. 429: beyond a limit.
 */
export function requireApiKey(guard: ApiKeyAuth, kind: ApiKeyKind): onRequestHookHandler {
  return async (request, reply) => {
    if (!(await authenticateKey(guard, kind, request, reply))) return reply;
  };
}

/** The check of {@link requireKey}. False: the request is answered. */
export async function authenticateKey(guard: ApiKeyAuth, kind: ApiKeyKind, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
  const refuse = (...error: Parameters<typeof apiError>): false => {
    sendError(reply, apiError(...error));
    return false;
  };
  const text = presentedKey(request);
  if (text === null) return refuse('missing_api_key');
  // Strangers behind the same address must not lock good keys out.
  const blockedFor = await guard.limits.wrongKeyBlockSeconds(request);
  const key = await lookUpKey(guard, text, blockedFor === null ? null : networkOf(request.ip));
  if (key === 'failed') return refuse('internal');
  if (key === null && blockedFor !== null) {
    return refuse('rate_limit_exceeded', { retryAfter: blockedFor, message: 'Too many wrong API keys came from this address.' });
  }
  if (key === null) {
    await guard.limits.countWrongKey(request);
    return refuse('invalid_api_key');
  }
  if (key.expiresAt !== null && key.expiresAt <= guard.now()) return refuse('invalid_api_key', { message: 'The API key has expired.' });
  if (key.kind !== kind) return refuse('forbidden');
  if (key.suspended) return refuse('account_suspended');
  request.apiKey = key;
  return guard.limits.admitApiKey(request, reply);
}

/** The account behind a guarded request. */
export function accountOf(request: FastifyRequest): string {
  return request.sessionAccountId ?? keyOf(request).accountId;
}

/** The key behind a guarded request. */
export function keyOf(request: FastifyRequest): ApiKey {
  if (request.apiKey === null) throw new Error('the route is not guarded by a key');
  return request.apiKey;
}

/** Whether the key may use the model. */
export function mayUseModel(key: ApiKey, model: string): boolean {
  return key.models === null || key.models.includes(model);
}

/** Throws RequestError `forbidden` if the key may not use the model. */
export function requireModel(key: ApiKey, model: string): void {
  if (mayUseModel(key, model)) return;
  throw new RequestError('forbidden', 'model', 'This API key may not use this model.');
}

/** `limitedNetwork`: the client's network, after many wrong keys. */
async function lookUpKey(guard: ApiKeyAuth, text: string, limitedNetwork: string | null): Promise<ApiKey | null | 'failed'> {
  try {
    if (limitedNetwork !== null) return await guard.apiKeyCache.authenticateLimited(text, limitedNetwork);
    return await guard.apiKeyCache.authenticate(text);
  } catch (error) {
    guard.onFailure(error);
    return 'failed';
  }
}

export function presentedKey(request: FastifyRequest): string | null {
  const { authorization } = request.headers;
  if (authorization !== undefined) {
    const [, token] = /^Bearer +(\S+) *$/i.exec(authorization) ?? [];
    if (token !== undefined) return token;
  }
  const header = request.headers['x-api-key'];
  if (typeof header === 'string' && header !== '') return header;
  // A header of another scheme is a wrong key rather than none.
  return authorization === undefined ? null : '';
}
