/** Routes under `/console/v1`: settings of the console (`/settings`), the signed-in user (`/session`, `/me`), the user's `/sessions`. */
import {
  apiError,
  type ConsoleMe,
  ConsoleMeSchema,
  type ConsoleSession,
  ConsoleSessionListSchema,
  ConsoleSessionSchema,
  type ConsoleSessionState,
  ConsoleSessionStateSchema,
  type ConsoleSettings,
  ConsoleSettingsSchema,
  RequestError,
} from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import type { Auth } from '../../accounts/auth.js';
import { deleteVerifications, revokeSession } from '../../accounts/expired-sessions.js';
import type { SignedIn } from '../../accounts/sessions.js';
import type { OrganisationRepository } from '../../database/accounts/organisation-repository.js';
import type { PlaygroundKeyRepository } from '../../database/accounts/playground-key-repository.js';
import { isoTime } from '../parameters/times.js';
import { type ConsoleAccess, type ConsoleApi, headersOf } from '../plugins/console-api.js';
import { consoleOrigin } from '../plugins/console-origin.js';
import { sendError } from '../plugins/send-error.js';
import { membershipBody } from './organisation-bodies.js';

export function addSettings(server: FastifyInstance, settings: ConsoleSettings): void {
  server.get(
    '/console/v1/settings',
    { onRequest: server.rateLimits.publicRoutes, schema: { response: { 200: ConsoleSettingsSchema } } },
    async () => settings,
  );
}

/** `/session`: the signed-in account, or null. A signed-out user gets 200, because browsers log each 401 as an error. */
export function addSession(server: FastifyInstance, { sessions, organisations, publicOrigin }: ConsoleAccess): void {
  server.get(
    '/console/v1/session',
    { onRequest: server.rateLimits.publicRoutes, schema: { response: { 200: ConsoleSessionStateSchema } } },
    async (request, reply) => {
      if (consoleOrigin(request, publicOrigin) === null) {
        sendError(reply, apiError('cross_origin', { message: 'The console is not served under this name. Set PUBLIC_URL.' }));
        return reply;
      }
      const { signedIn, setCookies } = await sessions.find(headersOf(request));
      if (setCookies.length > 0) reply.header('set-cookie', setCookies);
      reply.header('cache-control', 'no-store');
      const suspended = signedIn !== null && signedIn.account.suspendedAt !== null;
      return {
        account: signedIn === null || suspended ? null : await meBody(signedIn, organisations),
        suspended,
      } satisfies ConsoleSessionState;
    },
  );
}

async function meBody(who: SignedIn, organisations: OrganisationRepository): Promise<ConsoleMe> {
  return {
    id: who.account.id,
    name: who.name,
    email: who.email,
    email_verified: who.emailVerified,
    created_at: isoTime(who.account.createdAt),
    is_admin: who.account.isAdmin,
    organisations: (await organisations.memberships(who.account.id)).map(membershipBody),
  };
}

interface MeRoutes {
  readonly auth: Auth;
  readonly playgroundKeys: PlaygroundKeyRepository;
  readonly organisations: OrganisationRepository;
}

export function addMeRoutes(api: ConsoleApi, { auth, playgroundKeys, organisations }: MeRoutes): void {
  api.add({ method: 'GET', path: '/me', response: ConsoleMeSchema }, async ({ caller }) => meBody(caller, organisations));

  api.add({ method: 'GET', path: '/sessions', response: ConsoleSessionListSchema }, async ({ caller }) => {
    const { internalAdapter } = await auth.$context;
    const sessions = await internalAdapter.listSessions(caller.account.id, { onlyActiveSessions: true });
    return { data: sessions.map((session) => sessionBody(session, caller.sessionId)) };
  });

  api.add({ method: 'DELETE', path: '/sessions', response: ConsoleSessionListSchema }, async ({ caller }) => {
    const { internalAdapter } = await auth.$context;
    const others = (await internalAdapter.listSessions(caller.account.id)).filter((session) => session.id !== caller.sessionId);
    for (const session of others) await revokeSession(auth, caller.account.id, session.id);
    await playgroundKeys.revokeAll(caller.account.id);
    // Trusted browsers could otherwise sign in again without the second step.
    await deleteVerifications(auth, caller.account.id);
    return { data: others.map((session) => sessionBody(session, caller.sessionId)) };
  });

  api.add({ method: 'DELETE', path: '/sessions/:id', response: ConsoleSessionSchema }, async ({ caller, params }) => {
    const { internalAdapter } = await auth.$context;
    const sessions = await internalAdapter.listSessions(caller.account.id);
    const session = sessions.find((one) => one.id === params.id);
    if (session === undefined) throw new RequestError('not_found', null, 'There is no such session.');
    await revokeSession(auth, caller.account.id, session.id);
    return sessionBody(session, caller.sessionId);
  });
}

const MAX_USER_AGENT = 300;

interface SessionRow {
  readonly id: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly ipAddress?: string | null | undefined;
  readonly userAgent?: string | null | undefined;
}

function sessionBody(session: SessionRow, currentId: string): ConsoleSession {
  return {
    id: session.id,
    current: session.id === currentId,
    created_at: session.createdAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    address: session.ipAddress ?? null,
    user_agent: session.userAgent?.slice(0, MAX_USER_AGENT) ?? null,
  };
}
