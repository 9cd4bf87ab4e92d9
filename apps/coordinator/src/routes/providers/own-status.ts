/**
 * `GET /v1/providers/me`: own status of a provider, authenticated by its session token: trust, placements, reasons for missed jobs,
 * and steps for the owner.
 */
import { apiError } from '@inference/formats';
import type { ProviderStatusAnswer } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import { type ProviderEarnings, readProviderEarnings } from '../../database/earnings-repository.js';
import type { Database } from '../../database/tables.js';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import { presentedKey } from '../plugins/api-key-auth.js';
import { errorResponses, jsonResponse } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';
import { providerStatus } from './status/provider-status.js';

interface StatusSources {
  readonly registry: ProviderRegistry;
  readonly requestQueue: RequestQueue;
  readonly database: Database;
  readonly now: () => number;
  readonly onFailure: (error: unknown) => void;
}

const NO_TOKEN = 'The session token is missing. Send the token of the "registered" message as "Authorization: Bearer <token>".';
const WRONG_TOKEN = 'The session token is not valid: each token ends with its session.';

export function addProviderMe(server: FastifyInstance, sources: StatusSources): void {
  const schema = {
    summary: 'Status of the calling provider. The bearer token is the session token of the provider, not an API key.',
    tags: ['Providers'],
    response: { 200: jsonResponse('ProviderStatus'), ...errorResponses(401, 403) },
  };
  server.get('/v1/providers/me', { schema, onRequest: server.rateLimits.publicRoutes }, async (request, reply) => {
    const token = presentedKey(request);
    if (token === null) return sendError(reply, apiError('missing_api_key', { message: NO_TOKEN }));
    const provider = sources.registry.snapshotByToken(token);
    if (provider === null) return sendError(reply, apiError('invalid_api_key', { message: WRONG_TOKEN }));
    return reply.header('cache-control', 'no-store').send(await providerStatusOf(sources, provider));
  });
}

/** Status of a provider, for the provider itself, its owner and operators. */
export async function providerStatusOf(sources: StatusSources, provider: ProviderSnapshot): Promise<ProviderStatusAnswer> {
  const { registry, requestQueue, now } = sources;
  const earnings = await earningsOf(sources, provider.registration.identity.providerId);
  return providerStatus(provider, { registry, requestQueue, now: now(), earnings });
}

/** A failing ledger must not hide the rest of the status. */
async function earningsOf({ database, now, onFailure }: StatusSources, providerId: string): Promise<ProviderEarnings | null> {
  try {
    return await readProviderEarnings(database, providerId, now());
  } catch (error) {
    onFailure(error);
    return null;
  }
}
