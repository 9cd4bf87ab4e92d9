/** Guards: hooks that admit or answer a request before its body is read. An API key usually precedes a session. */
import { apiError } from '@inference/formats';
import type { FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { COOKIE_PREFIX } from '../../accounts/auth.js';
import { keyOf, presentedKey } from './api-key-auth.js';
import { authenticateSession, type ConsoleAccess, type ConsoleCaller } from './console-api.js';
import { sendError } from './send-error.js';

declare module 'fastify' {
  interface FastifyInstance {
    readonly guards: Guards;
  }
  interface FastifyRequest {
    /** Account of a session; set by the account and session guards. */
    sessionAccountId: string | null;
    /** Set by the session guard. */
    consoleCaller: ConsoleCaller | null;
    /** Set by the admin guard: `account:<id>` or `key:<id>`. */
    operator: string | null;
  }
}

/** An `onRequest` hook. Resolves with the reply of an answered request. */
type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

interface Guards {
  /** Admits an API key. */
  readonly apiKey: Guard;
  /** Admits an account to its own data, by API key or session. For routes without side effects. */
  readonly account: Guard;
  /** Admits operators: an admin key, or a session of an account with the admin flag. */
  readonly admin: Guard;
  /** Admits a session. */
  readonly session: Guard;
}

export const guards = fastifyPlugin<ConsoleAccess>(
  async (server, access) => {
    server.decorateRequest('sessionAccountId', null);
    server.decorateRequest('consoleCaller', null);
    server.decorateRequest('operator', null);

    const apiKey: Guard = async (request, reply) => ((await server.authenticateKey(request, reply, 'api')) ? undefined : reply);
    const session: Guard = async (request, reply) => {
      request.consoleCaller = await authenticateSession(access, request, reply);
      if (request.consoleCaller === null) return reply;
      request.sessionAccountId = request.consoleCaller.caller.account.id;
    };
    const account: Guard = (request, reply) => (hasSessionCookieOnly(request) ? session : apiKey)(request, reply);
    const admin: Guard = async (request, reply) => {
      if (!hasSessionCookieOnly(request)) {
        if (!(await server.authenticateKey(request, reply, 'admin'))) return reply;
        request.operator = `key:${keyOf(request).id}`;
        return;
      }
      const caller = await authenticateSession(access, request, reply);
      if (caller === null) return reply;
      const { id, isAdmin } = caller.caller.account;
      if (!isAdmin) {
        sendError(reply, apiError('forbidden', { message: 'This account may not do that.' }));
        return reply;
      }
      request.operator = `account:${id}`;
    };
    server.decorate('guards', { apiKey, account, admin, session });
  },
  { decorators: { fastify: ['authenticateKey'] } },
);

/** Whether the request has the console's session cookie and no API key. */
function hasSessionCookieOnly(request: FastifyRequest): boolean {
  return presentedKey(request) === null && SESSION_COOKIE.test(request.headers.cookie ?? '');
}

const SESSION_COOKIE = new RegExp(`(?:^|;\\s*)(?:__Host-)?${COOKIE_PREFIX}\\.session_token=`);

export function operatorOf(request: FastifyRequest): string {
  if (request.operator === null) throw new Error('the route is not guarded for operators');
  return request.operator;
}
