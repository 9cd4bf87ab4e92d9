/** Guards of what a key or a session opens: a session is asked for only where no key was sent. */
import { apiError } from '@inference/formats';
import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import { COOKIE_PREFIX } from '../../accounts/auth.js';
import { type ApiKeyAuth, authenticateKey, keyOf, presentedKey } from './api-key-auth.js';
import { authenticateSession, type ConsoleAccess } from './console-api.js';
import { sendError } from './send-error.js';

/** Who may operate: an admin key, or somebody signed in whose account has the admin flag. */
export function requireAdmin(keys: ApiKeyAuth, door: ConsoleAccess): onRequestHookHandler {
  return async (request, reply) => {
    if (!hasSessionCookieOnly(request)) {
      if (!(await authenticateKey(keys, 'admin', request, reply))) return reply;
      request.operator = `key:${keyOf(request).id}`;
      return;
    }
    const entered = await authenticateSession(door, request, reply);
    if (entered === null) return reply;
    if (entered.caller.account.isAdmin) {
      request.operator = `account:${entered.caller.account.id}`;
      return;
    }
    sendError(reply, apiError('forbidden', { message: 'This account may not do that.' }));
    return reply;
  };
}

/** Who may read what is an account's own: any of its API keys, or its owner. For addresses that change nothing. */
export function requireAccount(keys: ApiKeyAuth, door: ConsoleAccess): onRequestHookHandler {
  return async (request, reply) => {
    if (!hasSessionCookieOnly(request)) {
      if (!(await authenticateKey(keys, 'api', request, reply))) return reply;
      return;
    }
    const entered = await authenticateSession(door, request, reply);
    if (entered === null) return reply;
    request.sessionAccountId = entered.caller.account.id;
  };
}

/** A session's cookie and no key. Cookies of others, such as a proxy's, say nothing about who is calling. */
function hasSessionCookieOnly(request: FastifyRequest): boolean {
  return presentedKey(request) === null && SESSION_COOKIE.test(request.headers.cookie ?? '');
}

const SESSION_COOKIE = new RegExp(`(?:^|;\\s*)(?:__Host-)?${COOKIE_PREFIX}\\.session_token=`);
