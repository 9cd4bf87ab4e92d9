/** `/console/v1/settings`, `/me` and `/sessions`: what is offered here, who is signed in, and from where. */
import {
  ConsoleMeSchema,
  type ConsoleSession,
  ConsoleSessionListSchema,
  ConsoleSessionSchema,
  type ConsoleSettings,
  RequestError,
} from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import type { Auth } from '../../accounts/auth.js';
import type { PlaygroundKeys } from '../../store/playground-keys.js';
import type { RateLimits } from '../rate-limits.js';
import type { ConsoleApi } from './console-api.js';
import { isoTime } from './page.js';

export function addSettings(server: FastifyInstance, limits: RateLimits, settings: ConsoleSettings): void {
  server.get('/console/v1/settings', { onRequest: limits.publicRoutes }, async () => settings);
}

export function addMeRoutes(api: ConsoleApi, auth: Auth, playgroundKeys: PlaygroundKeys): void {
  api.add({ method: 'GET', path: '/me', answer: ConsoleMeSchema }, async ({ who }) => ({
    id: who.account.id,
    name: who.name,
    email: who.email,
    email_verified: who.emailVerified,
    created_at: isoTime(who.account.createdAt),
    is_admin: who.account.isAdmin,
  }));

  api.add({ method: 'GET', path: '/sessions', answer: ConsoleSessionListSchema }, async ({ who }) => {
    const { internalAdapter } = await auth.$context;
    const sessions = await internalAdapter.listSessions(who.account.id, { onlyActiveSessions: true });
    return { data: sessions.map((session) => sessionBody(session, who.sessionId)) };
  });

  api.add({ method: 'DELETE', path: '/sessions', answer: ConsoleSessionListSchema }, async ({ who }) => {
    const { internalAdapter } = await auth.$context;
    const others = (await internalAdapter.listSessions(who.account.id)).filter((session) => session.id !== who.sessionId);
    for (const session of others) await internalAdapter.deleteSession(session.token);
    await playgroundKeys.revokeAll(who.account.id);
    return { data: others.map((session) => sessionBody(session, who.sessionId)) };
  });

  api.add({ method: 'DELETE', path: '/sessions/:id', answer: ConsoleSessionSchema }, async ({ who, params }) => {
    const { internalAdapter } = await auth.$context;
    const sessions = await internalAdapter.listSessions(who.account.id);
    const session = sessions.find((one) => one.id === params.id);
    if (session === undefined) throw new RequestError('not_found', null, 'There is no such session.');
    await internalAdapter.deleteSession(session.token);
    return sessionBody(session, who.sessionId);
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
