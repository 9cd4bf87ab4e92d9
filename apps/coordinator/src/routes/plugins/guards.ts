/** Guards: `onRequest` hooks that authenticate and authorize a request before its body is read, by API key or console session. */
import { ACCOUNT_HEADER, apiError } from '@inference/formats';
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { COOKIE_PREFIX } from '../../accounts/auth.js';
import type { OrganisationAct } from '../../database/accounts/organisation-log.js';
import { hasPermission } from '../../database/accounts/organisation-roles.js';
import { keyOf, presentedKey } from './api-key-auth.js';
import { policyOf } from './console-access-policy.js';
import { authenticateSession, type ConsoleAccess, type ConsoleCaller } from './console-api.js';
import { sendError } from './send-error.js';

declare module 'fastify' {
  interface FastifyInstance {
    readonly guards: Guards;
    /** Writes an action to the log of an organisation. Never rejects, because the action has already taken effect. */
    recordAct(act: OrganisationAct): Promise<void>;
  }
  interface FastifyRequest {
    /** Account that a session acts for, set by the account and session guards. */
    sessionAccountId: string | null;
    /** Set by the account and session guards, for requests with a session. */
    consoleCaller: ConsoleCaller | null;
    /** Set by the admin guard: `account:<id>` or `key:<id>`. */
    operator: string | null;
  }
}

/** An `onRequest` hook. Resolves to the reply if the request was refused and the error is sent. */
type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

interface Guards {
  readonly apiKey: Guard;
  /** Admits an API key or a session. A request with both is authenticated by key. */
  readonly account: Guard;
  /** Admits operators: an admin key, or a session of an account with the admin flag. */
  readonly admin: Guard;
  /** Admits a session whose person may use the route in the account that the request names, by `ACCESS_POLICIES`. */
  readonly session: Guard;
}

export const guards = fastifyPlugin<ConsoleAccess>(
  async (server, access) => {
    server.decorateRequest('sessionAccountId', null);
    server.decorateRequest('consoleCaller', null);
    server.decorateRequest('operator', null);

    const apiKey: Guard = async (request, reply) => ((await server.authenticateKey(request, reply, 'api')) ? undefined : reply);
    const session: Guard = async (request, reply) => {
      const person = await authenticateSession(access, request, reply);
      request.consoleCaller = person === null ? null : await actForAccount(access, person, request, reply);
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
    server.decorate('recordAct', (act) => access.organisationLog.add(act).catch(access.onLogError));
    server.addHook('onRoute', (route) => {
      if (!usesAny(route, [session, account])) return;
      // Throws for a route without a policy.
      for (const method of [route.method].flat()) policyOf(method, route.url);
    });
  },
  { decorators: { fastify: ['authenticateKey'] } },
);

function usesAny({ onRequest }: RouteOptions, guards: readonly Guard[]): boolean {
  return [onRequest ?? []].flat().some((hook) => guards.includes(hook as Guard));
}

/**
 * Resolves the account that the request names: the person's own, or an organisation in which the person's role permits the route.
 *
 * Returns null after sending an error. Memberships are read on every request, so that a removal takes effect at once.
 */
async function actForAccount(
  { organisations }: ConsoleAccess,
  person: ConsoleCaller,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<ConsoleCaller | null> {
  const refuse = (...error: Parameters<typeof apiError>): null => {
    sendError(reply, apiError(...error));
    return null;
  };
  const header = request.headers[ACCOUNT_HEADER];
  // The console expects the header in the response: coordinators of earlier versions ignore it and act for the person.
  if (typeof header === 'string') reply.header(ACCOUNT_HEADER, header);
  const policy = policyOf(request.method, request.routeOptions.url ?? '');
  if (policy.acts === 'person') return person;
  const accountId = namedAccount(request);
  if (accountId === null || accountId === person.userId) {
    if (policy.acts === 'account') return person;
    return refuse('invalid_request', { param: ACCOUNT_HEADER, message: `${ACCOUNT_HEADER} must be the id of an organisation.` });
  }
  const membership = await organisations.membership(person.userId, accountId);
  if (membership === null) return refuse('not_a_member');
  const { account, role } = membership;
  if (account.suspendedAt !== null) return refuse('account_suspended', { message: 'This organisation is suspended.' });
  if (!hasPermission(role, policy.permission)) {
    return refuse('forbidden', { message: `Your role in this organisation, ${role}, does not permit that.` });
  }
  return { ...person, caller: { ...person.caller, account }, organisation: { id: accountId, role } };
}

/** Id of the account that the request names, if any. The query parameter serves links, which cannot send a header. */
function namedAccount(request: FastifyRequest): string | null {
  const header = request.headers[ACCOUNT_HEADER];
  if (typeof header === 'string') return header;
  const { account_id } = request.query as { readonly account_id?: unknown };
  return request.method === 'GET' && typeof account_id === 'string' ? account_id : null;
}

function hasSessionCookieOnly(request: FastifyRequest): boolean {
  return presentedKey(request) === null && SESSION_COOKIE.test(request.headers.cookie ?? '');
}

const SESSION_COOKIE = new RegExp(`(?:^|;\\s*)(?:__Host-)?${COOKIE_PREFIX}\\.session_token=`);

export function operatorOf(request: FastifyRequest): string {
  if (request.operator === null) throw new Error('the route is not guarded for operators');
  return request.operator;
}
