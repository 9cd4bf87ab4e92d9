/** Guards of routes. All run before the body is read. A session is consulted only if the request carries no API key. */
import { apiError } from '@inference/formats';
import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import { COOKIE_PREFIX } from '../../accounts/auth.js';
import { type ApiKeyAuth, authenticateKey, keyOf, presentedKey, requireApiKey } from './api-key-auth.js';
import { authenticateSession, type ConsoleAccess } from './console-api.js';
import type { RateLimits } from './rate-limits.js';
import { sendError } from './send-error.js';

/** Guards and limits that the wiring passes to every room of routes. */
export interface RouteAccess {
  readonly limits: RateLimits;
  readonly consoleAccess: ConsoleAccess;
  /** Admits an API key. */
  readonly apiKeyGuard: onRequestHookHandler;
  /** Admits an account to its own data, by API key or session. For routes without side effects. */
  readonly accountGuard: onRequestHookHandler;
  /** Admits operators: an admin key, or a session of an account with the admin flag. */
  readonly adminGuard: onRequestHookHandler;
}

export function createRouteAccess(keys: ApiKeyAuth, consoleAccess: ConsoleAccess): RouteAccess {
  return {
    limits: keys.limits,
    consoleAccess,
    apiKeyGuard: requireApiKey(keys, 'api'),
    accountGuard: requireAccount(keys, consoleAccess),
    adminGuard: requireAdmin(keys, consoleAccess),
  };
}

function requireAdmin(keys: ApiKeyAuth, consoleAccess: ConsoleAccess): onRequestHookHandler {
  return async (request, reply) => {
    if (!hasSessionCookieOnly(request)) {
      if (!(await authenticateKey(keys, 'admin', request, reply))) return reply;
      request.operator = `key:${keyOf(request).id}`;
      return;
    }
    const consoleCaller = await authenticateSession(consoleAccess, request, reply);
    if (consoleCaller === null) return reply;
    if (consoleCaller.caller.account.isAdmin) {
      request.operator = `account:${consoleCaller.caller.account.id}`;
      return;
    }
    sendError(reply, apiError('forbidden', { message: 'This account may not do that.' }));
    return reply;
  };
}

function requireAccount(keys: ApiKeyAuth, consoleAccess: ConsoleAccess): onRequestHookHandler {
  return async (request, reply) => {
    if (!hasSessionCookieOnly(request)) {
      if (!(await authenticateKey(keys, 'api', request, reply))) return reply;
      return;
    }
    const consoleCaller = await authenticateSession(consoleAccess, request, reply);
    if (consoleCaller === null) return reply;
    request.sessionAccountId = consoleCaller.caller.account.id;
  };
}

/** Whether the request carries our session cookie and no API key. Other cookies, such as a proxy's, do not count. */
function hasSessionCookieOnly(request: FastifyRequest): boolean {
  return presentedKey(request) === null && SESSION_COOKIE.test(request.headers.cookie ?? '');
}

const SESSION_COOKIE = new RegExp(`(?:^|;\\s*)(?:__Host-)?${COOKIE_PREFIX}\\.session_token=`);

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the admin guard: `account:<id>` or `key:<id>`. */
    operator: string | null;
  }
}

export function operatorOf(request: FastifyRequest): string {
  if (request.operator === null) throw new Error('the route is not guarded for operators');
  return request.operator;
}
