/** Who is calling: the key from `Authorization: Bearer` or `x-api-key` (clients of both formats send one or the other). */
import { apiError } from '@inference/formats';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { ApiKey } from '../store/api-keys.js';
import type { KeyRing } from '../store/key-ring.js';
import type { ApiKeyKind } from '../store/tables.js';
import { sendError } from './send-error.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set where {@link requireKey} guards a route. */
    apiKey: ApiKey | null;
  }
}

/** Guards a route: a known key of this kind, or 401, or 403 for a key of the other kind. Runs before the body is read. */
export function requireKey(keyRing: KeyRing, kind: ApiKeyKind, onFailure: (error: unknown) => void): onRequestHookHandler {
  return (request, reply, done) => {
    const text = presentedKey(request);
    if (text === null) {
      sendError(reply, apiError('missing_api_key'));
      return;
    }
    const found = keyRing.recognise(text);
    if (!(found instanceof Promise)) {
      if (admit(request, reply, found, kind)) done();
      return;
    }
    found.then(
      (key) => {
        if (admit(request, reply, key, kind)) done();
      },
      (error: unknown) => {
        onFailure(error);
        sendError(reply, apiError('internal'));
      },
    );
  };
}

/** The account behind a guarded request. */
export function accountOf(request: FastifyRequest): string {
  if (request.apiKey === null) throw new Error('the route is not guarded by a key');
  return request.apiKey.accountId;
}

function admit(request: FastifyRequest, reply: FastifyReply, key: ApiKey | null, kind: ApiKeyKind): boolean {
  if (key === null) sendError(reply, apiError('invalid_api_key'));
  else if (key.kind !== kind) sendError(reply, apiError('forbidden'));
  else {
    request.apiKey = key;
    return true;
  }
  return false;
}

function presentedKey(request: FastifyRequest): string | null {
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
