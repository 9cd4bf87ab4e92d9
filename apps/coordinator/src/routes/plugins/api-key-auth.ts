/**
 * `apiKeyAuth` is a Fastify plugin that authenticates requests by API key (`Authorization: Bearer` or `x-api-key`). Handlers then read the
 * account with `accountOf` and the key with `keyOf`.
 */
import { apiError, RequestError } from '@inference/formats';
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { ApiKeyCache } from '../../database/accounts/api-key-cache.js';
import type { ApiKey } from '../../database/accounts/api-key-repository.js';
import { isUnavailable } from '../../database/connection/transaction-retry.js';
import type { ApiKeyKind } from '../../database/tables.js';
import { networkOf } from '../../limits/network-address.js';
import { sendError } from './send-error.js';

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Admits a request with a valid key of `kind` within its rate limit. Otherwise sends an error and returns false.
     *
     * 401: no key, or an unknown, revoked or expired key. 403: a key of the other kind, or a suspended account. 429: a rate limit is
     * exceeded. 503: the database did not answer. 500: another failure.
     */
    authenticateKey(request: FastifyRequest, reply: FastifyReply, kind: ApiKeyKind): Promise<boolean>;
  }
  interface FastifyRequest {
    /** Set by `authenticateKey`. */
    apiKey: ApiKey | null;
  }
}

interface ApiKeyAuthOptions {
  readonly apiKeyCache: ApiKeyCache;
  readonly now: () => number;
  readonly onFailure: (error: unknown) => void;
}

export const apiKeyAuth = fastifyPlugin<ApiKeyAuthOptions>(
  async (server, { apiKeyCache, now, onFailure }) => {
    const { rateLimits } = server;
    server.decorateRequest('apiKey', null);
    server.decorate('authenticateKey', async (request, reply, kind) => {
      const refuse = (...error: Parameters<typeof apiError>): false => {
        sendError(reply, apiError(...error));
        return false;
      };
      const text = presentedKey(request);
      if (text === null) return refuse('missing_api_key');
      // Valid keys are accepted even while the address is blocked, because other clients may share the address.
      const blockedFor = await rateLimits.wrongKeyBlockSeconds(request);
      let key: ApiKey | null;
      try {
        if (blockedFor === null) key = await apiKeyCache.authenticate(text);
        else key = await apiKeyCache.authenticateLimited(text, networkOf(request.ip));
      } catch (error) {
        onFailure(error);
        if (!isUnavailable(error)) return refuse('internal');
        return refuse('billing_unavailable', { message: 'The API key could not be looked up now. Try again in a moment.' });
      }
      if (key === null) {
        const retryAfter = blockedFor ?? (await rateLimits.countWrongKey(request));
        if (retryAfter === null) return refuse('invalid_api_key');
        return refuse('rate_limit_exceeded', { retryAfter, message: 'Too many wrong API keys came from this address.' });
      }
      if (key.expiresAt !== null && key.expiresAt <= now()) return refuse('invalid_api_key', { message: 'The API key has expired.' });
      if (key.kind !== kind) return refuse('forbidden');
      if (key.suspended) return refuse('account_suspended');
      request.apiKey = key;
      return rateLimits.admitApiKey(request, reply);
    });
  },
  { decorators: { fastify: ['rateLimits'] } },
);

/** Account that the request acts for, by session or API key. Only for routes with the `account`, `session` or `apiKey` guard. */
export function accountOf(request: FastifyRequest): string {
  return request.sessionAccountId ?? keyOf(request).accountId;
}

/** API key of the request. Only for routes with a key guard. */
export function keyOf(request: FastifyRequest): ApiKey {
  if (request.apiKey === null) throw new Error('the route is not guarded by a key');
  return request.apiKey;
}

export function mayUseModel(key: ApiKey, model: string): boolean {
  return key.models === null || key.models.includes(model);
}

/** Throws RequestError `forbidden` if the key may not use the model. */
export function requireModel(key: ApiKey, model: string): void {
  if (mayUseModel(key, model)) return;
  throw new RequestError('forbidden', 'model', 'This API key may not use this model.');
}

/** Key in the request headers. Null without a key; empty for an `Authorization` header of another scheme. */
export function presentedKey(request: FastifyRequest): string | null {
  const { authorization } = request.headers;
  if (authorization !== undefined) {
    const [, token] = /^Bearer +(\S+) *$/i.exec(authorization) ?? [];
    if (token !== undefined) return token;
  }
  const header = request.headers['x-api-key'];
  if (typeof header === 'string' && header !== '') return header;
  return authorization === undefined ? null : '';
}
