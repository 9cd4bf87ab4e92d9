/**
 * For those who run the coordinator and for what stands in front of it: whether the process lives, and whether it should be
 * given traffic. Both answer without a key, and also while it shuts down.
 */
import type { FastifyInstance } from 'fastify';
import type { DatabaseState } from '../../database/connection/database-state.js';
import { jsonResponse, NO_CREDENTIALS } from '../plugins/route-schemas.js';

export interface HealthRoutes {
  readonly isDraining: () => boolean;
  /** Never rejects. */
  readonly database: () => Promise<DatabaseState>;
  readonly now: () => number;
}

/** An answer of the database counts for this long, so that nobody can keep it busy with questions. Milliseconds. */
const CACHE_MS = 500;

/** What is asked of them does not depend on whether the coordinator takes requests. */
export function isHealthPath(url: string): boolean {
  return /^\/health(?:\/ready)?(?:\?|$)/.test(url);
}

export function addHealth(server: FastifyInstance, { isDraining, database, now }: HealthRoutes): void {
  let latest: { readonly at: number; readonly state: Promise<DatabaseState> } | null = null;
  const schema = {
    summary: 'Whether the service runs.',
    tags: ['System'],
    security: NO_CREDENTIALS,
    response: { 200: jsonResponse('Health') },
  };
  server.get('/health', { schema }, async () => ({ status: 'ok' }));
  server.get('/health/ready', async (_request, reply) => {
    if (latest === null || now() - latest.at >= CACHE_MS) latest = { at: now(), state: database() };
    const state = await latest.state;
    const draining = isDraining();
    const ready = state === 'ok' && !draining;
    const checks = {
      database: state === 'unreachable' ? 'unreachable' : 'ok',
      migrations: state === 'ok' ? 'ok' : state === 'migrations_missing' ? 'missing' : 'unknown',
      draining,
    };
    const reason = draining ? 'draining' : state === 'ok' ? null : `database_${state}`;
    reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not_ready', reason, checks });
    return reply;
  });
}
