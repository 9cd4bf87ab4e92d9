/** `/health` (liveness) and `/health/ready` (readiness). Both answer without a key, also during a shutdown. */
import type { FastifyInstance } from 'fastify';
import Type, { type Static } from 'typebox';
import type { DatabaseState } from '../../database/connection/database-state.js';
import { jsonResponse, NO_CREDENTIALS } from '../plugins/route-schemas.js';

interface HealthRoutes {
  readonly isDraining: () => boolean;
  /** Never rejects. */
  readonly database: () => Promise<DatabaseState>;
  readonly now: () => number;
}

/** Lifetime of the cached database state, in milliseconds. Bounds the load of health checks on the database. */
const CACHE_MS = 500;

/** Whether the URL is a health route. Health routes answer even while the coordinator refuses other requests. */
export function isHealthPath(url: string): boolean {
  return /^\/health(?:\/ready)?(?:\?|$)/.test(url);
}

const ReadinessSchema = Type.Object({
  status: Type.Enum(['ready', 'not_ready']),
  reason: Type.Union([Type.Enum(['draining', 'database_unreachable', 'database_migrations_missing', 'database_too_new']), Type.Null()]),
  checks: Type.Object({
    database: Type.Enum(['ok', 'unreachable']),
    migrations: Type.Enum(['ok', 'missing', 'too_new', 'unknown']),
    draining: Type.Boolean(),
  }),
});
type Readiness = Static<typeof ReadinessSchema>;

const MIGRATION_CHECKS = { ok: 'ok', migrations_missing: 'missing', too_new: 'too_new', unreachable: 'unknown' } as const;

export function addHealth(server: FastifyInstance, { isDraining, database, now }: HealthRoutes): void {
  let latest: { readonly at: number; readonly state: Promise<DatabaseState> } | null = null;
  const schema = {
    summary: 'Whether the service runs.',
    tags: ['System'],
    security: NO_CREDENTIALS,
    response: { 200: jsonResponse('Health') },
  };
  server.get('/health', { schema }, async () => ({ status: 'ok' }));
  const readySchema = { response: { 200: ReadinessSchema, 503: ReadinessSchema } };
  server.get('/health/ready', { schema: readySchema }, async (_request, reply): Promise<Readiness> => {
    const age = latest === null ? CACHE_MS : now() - latest.at;
    // A negative age means that the clock was set back.
    if (latest === null || age < 0 || age >= CACHE_MS) latest = { at: now(), state: database() };
    const state = await latest.state;
    const draining = isDraining();
    const ready = state === 'ok' && !draining;
    reply.code(ready ? 200 : 503);
    return {
      status: ready ? 'ready' : 'not_ready',
      reason: draining ? 'draining' : state === 'ok' ? null : `database_${state}`,
      checks: { database: state === 'unreachable' ? 'unreachable' : 'ok', migrations: MIGRATION_CHECKS[state], draining },
    };
  });
}
