/**
 * `GET /v1/providers/me`: status of the requesting provider, with trust, placements, reasons for missed jobs, and next steps.
 * `providerStatuses` finds the same status for routes of the provider's owner and of operators.
 */
import { apiError, documentedErrors } from '@inference/formats';
import {
  fromHex,
  ModelOfferSchema,
  type ProviderId,
  ProviderIdSchema,
  type ProviderStatusAnswer,
  ProviderStatusSchema,
  Sha256HexSchema,
  toHex,
} from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import type { Lookup, NetworkViews } from '../../cluster/views.js';
import { type ProviderEarnings, readProviderEarnings } from '../../database/earnings-repository.js';
import type { Database } from '../../database/tables.js';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import { hashOfToken, providerOfToken } from '../../providers/session/registration/session-token.js';
import { type Demand, DemandSchema, demandOf, networkDemand } from '../inference/model-parts.js';
import { presentedKey } from '../plugins/api-key-auth.js';
import { jsonResponse } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';
import { providerStatus, withDemand } from './status/provider-status.js';

interface StatusSources {
  readonly registry: ProviderRegistry;
  readonly requestQueue: RequestQueue;
  readonly database: Database;
  readonly now: () => number;
  readonly onFailure: (error: unknown) => void;
}

const NO_TOKEN = 'The session token is missing. Send the token of the "registered" message as "Authorization: Bearer <token>".';
const WRONG_TOKEN = 'The session token is not valid: each token ends with its session.';
const TOKEN_ERRORS = { missing_api_key: { message: NO_TOKEN }, invalid_api_key: { message: WRONG_TOKEN } } as const;

/** Query to other coordinators, which get only the hash of the session token. */
const TokenQuerySchema = Type.Object({ provider_id: ProviderIdSchema, token_sha256: Sha256HexSchema });

const MAX_MODELS = 64;
const DemandQuerySchema = Type.Array(ModelOfferSchema.properties.id, { maxItems: MAX_MODELS });
const DemandPartSchema = Type.Array(DemandSchema, { maxItems: MAX_MODELS });

/** Replaces the demand for models in a status, of one coordinator's clients, by that of all coordinators. Null for null. */
type ReplaceDemand = (status: ProviderStatusAnswer | null) => Promise<ProviderStatusAnswer | null>;

export function networkDemandReplacer({ registry, requestQueue }: StatusSources, views: NetworkViews): ReplaceDemand {
  const readDemand = views.define('demand', { query: DemandQuerySchema, part: DemandPartSchema }, (models) =>
    models.map((model) => demandOf(model, registry, requestQueue)),
  );
  return async (status) => {
    if (status === null) return null;
    const models = status.models.map(({ id }) => id);
    const parts = await readDemand(models);
    const demands = models.map((id, index): [string, Demand] => [id, networkDemand(parts.flatMap((part) => part[index] ?? []))]);
    const byModel = new Map(demands);
    return withDemand(status, (model) => byModel.get(model) ?? networkDemand([]));
  };
}

export function addProviderMe(
  server: FastifyInstance,
  sources: StatusSources,
  views: NetworkViews,
  withNetworkDemand: ReplaceDemand,
): void {
  const findStatus = views.defineLookup('provider-me', { query: TokenQuerySchema, part: ProviderStatusSchema }, (query) => {
    const provider = sources.registry.snapshotByToken(query.provider_id, fromHex(query.token_sha256));
    return provider === null ? null : providerStatusOf(sources, provider);
  });
  const schema = {
    summary: 'Status of the calling provider. The bearer token is the session token of the provider, not an API key.',
    tags: ['Providers'],
    response: {
      200: jsonResponse('ProviderStatus'),
      ...documentedErrors(['missing_api_key', 'invalid_api_key', 'rate_limit_exceeded'], 'OpenAiError', TOKEN_ERRORS),
    },
  };
  server.get('/v1/providers/me', { schema, onRequest: server.rateLimits.publicRoutes }, async (request, reply) => {
    const token = presentedKey(request);
    if (token === null) return sendError(reply, apiError('missing_api_key', { message: NO_TOKEN }));
    const providerId = providerOfToken(token);
    const found = providerId === null ? null : await findStatus({ provider_id: providerId, token_sha256: toHex(hashOfToken(token)) });
    const status = await withNetworkDemand(found);
    if (status === null) return sendError(reply, apiError('invalid_api_key', { message: WRONG_TOKEN }));
    return reply.header('cache-control', 'no-store').send(status);
  });
}

/** Returns a function that finds the status of a connected provider, for its owner and for operators. */
export function providerStatuses(
  sources: StatusSources,
  views: NetworkViews,
  withNetworkDemand: ReplaceDemand,
): Lookup<ProviderId, ProviderStatusAnswer> {
  const findStatus = views.defineLookup('provider-status', { query: ProviderIdSchema, part: ProviderStatusSchema }, (providerId) => {
    const provider = sources.registry.snapshot(providerId);
    return provider === null ? null : providerStatusOf(sources, provider);
  });
  return async (providerId) => withNetworkDemand(await findStatus(providerId));
}

async function providerStatusOf(sources: StatusSources, provider: ProviderSnapshot): Promise<ProviderStatusAnswer> {
  const { registry, requestQueue, now } = sources;
  const earnings = await earningsOf(sources, provider.registration.identity.providerId);
  return providerStatus(provider, { registry, requestQueue, now: now(), earnings });
}

/** Earnings of a provider, or null if the database fails, so that the rest of the status is still shown. */
async function earningsOf({ database, now, onFailure }: StatusSources, providerId: string): Promise<ProviderEarnings | null> {
  try {
    return await readProviderEarnings(database, providerId, now());
  } catch (error) {
    onFailure(error);
    return null;
  }
}
