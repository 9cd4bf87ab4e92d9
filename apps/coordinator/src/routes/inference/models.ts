/**
 * `GET /v1/models` and `GET /v1/models/{id}`: models served now (spec: model list), and the demand of a single model. Clients of
 * the Messages format get further members.
 */
import { RequestError } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import type { Static } from 'typebox';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import { unknownModel } from '../../inference/request/unknown-model.js';
import { MAX_LISTED_MODELS } from '../../providers/placement/listed-models.js';
import type { ListedModel } from '../../providers/placement/model-directory.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { queryReader } from '../parameters/query.js';
import { errorResponses, jsonResponse, pathParams } from '../plugins/route-schemas.js';
import { isAnthropicClient, sendError } from '../plugins/send-error.js';
import { ModelListQuerySchema } from './model-schemas.js';

const OWNER = 'inference-network';

type ListQuery = Static<typeof ModelListQuerySchema>;
const readListQuery = queryReader(ModelListQuerySchema);

export function addModels(server: FastifyInstance, registry: ProviderRegistry, requestQueue: RequestQueue): void {
  const messagesMembers = (model: ListedModel) => modelInfo(model, registry.models.contextLength(model.offer.id, null));
  const entryOf = (model: ListedModel) => ({ ...modelEntry(model), ...limitsOf(model, registry) });
  const listSchema = {
    summary: `Models that are served now, ${MAX_LISTED_MODELS} at most. limit, after_id and before_id select a page.`,
    tags: ['Models'],
    querystring: ModelListQuerySchema,
    response: { 200: jsonResponse('ModelList'), ...errorResponses(400, 401, 403) },
  };
  server.get('/v1/models', { schema: listSchema, onRequest: server.guards.account }, async (request) => {
    const query = readListQuery(request.url);
    const { models, hasMore } = pageOf(registry.models.listing().models, query);
    const isMessages = isAnthropicClient(request);
    const data = models.map((model) => (isMessages ? { ...entryOf(model), ...messagesMembers(model) } : entryOf(model)));
    const list = { object: 'list', data };
    if (!isMessages && Object.keys(query).length === 0) return list;
    return { ...list, has_more: hasMore, first_id: data.at(0)?.id ?? null, last_id: data.at(-1)?.id ?? null };
  });
  const modelSchema = {
    summary: 'One model that is served now, with its demand. The id may contain slashes.',
    tags: ['Models'],
    params: pathParams('id'),
    response: { 200: jsonResponse('Model'), ...errorResponses(401, 403, 404) },
  };
  // A wildcard, because model ids may contain slashes.
  server.get<{ Params: { '*': string } }>('/v1/models/*', { schema: modelSchema, onRequest: server.guards.account }, (request, reply) => {
    const id = request.params['*'];
    const model = registry.models.find(id);
    if (model === null) return sendError(reply, unknownModel(id, registry.models.listedNames()));
    const { metadata, ...entry } = entryOf(model);
    const ofMessages = isAnthropicClient(request) ? messagesMembers(model) : {};
    reply.send({ ...entry, ...ofMessages, metadata: { ...metadata, ...demandOf(model.offer.id, registry, requestQueue) } });
  });
}

/** A page of the list, sorted by id. */
function pageOf(
  listed: readonly ListedModel[],
  { limit = MAX_LISTED_MODELS, after_id: afterId, before_id: beforeId }: ListQuery,
): { readonly models: readonly ListedModel[]; readonly hasMore: boolean } {
  if (afterId !== undefined && beforeId !== undefined) {
    throw new RequestError('invalid_request', 'before_id', 'Give after_id or before_id, not both.');
  }
  const rest = listed.filter(({ offer: { id } }) => (afterId === undefined || id > afterId) && (beforeId === undefined || id < beforeId));
  const models = beforeId === undefined ? rest.slice(0, limit) : rest.slice(-limit);
  return { models, hasMore: models.length < rest.length };
}

/** Current demand of a model, and the expected wait of a new request. */
function demandOf(id: string, registry: ProviderRegistry, requestQueue: RequestQueue) {
  const { waiting, waitMs } = requestQueue.outlook(id);
  const hardware = requestQueue.outlook(id, 'hardware');
  return {
    slots: registry.models.slotCount(id),
    hardware_slots: registry.models.slotCount(id, { providerSerial: null, trustFloor: 'hardware' }),
    requests_last_5_minutes: registry.placement.reports.recentRequests(id),
    waiting_requests: waiting,
    expected_wait_ms: waitMs === null ? null : Math.round(waitMs),
    hardware_expected_wait_ms: hardware.waitMs === null ? null : Math.round(hardware.waitMs),
  };
}

function modelEntry({ offer, providers, firstSeenAt }: ListedModel) {
  const levels = providers.map(({ trustLevel }) => trustLevel);
  return {
    id: offer.id,
    object: 'model',
    created: Math.floor(firstSeenAt / 1000),
    owned_by: OWNER,
    metadata: {
      model_type: offer.model_type,
      quantization: offer.quantization,
      provider_count: providers.length,
      attested_providers: providers.filter(({ isAttested }) => isAttested).length,
      trust_level: levels.includes('hardware') ? 'hardware' : 'self_signed',
      display_name: offer.display_name,
      ...(offer.model_type === 'image' ? imageFacts(providers) : {}),
      ...weightsFacts(providers),
    },
  };
}

/** Context and output limits under the names of OpenRouter: the largest context of any current provider. Null without providers. */
function limitsOf({ offer }: ListedModel, registry: ProviderRegistry) {
  if (offer.model_type === 'image') return {};
  const contextLength = registry.models.contextLength(offer.id, null);
  const maxOutputTokens = offer.model_type === 'text' ? contextLength : null;
  return {
    context_length: contextLength,
    max_output_tokens: maxOutputTokens,
    top_provider: { context_length: contextLength, max_completion_tokens: maxOutputTokens },
  };
}

/** A model in the Messages format. Members without a value here are null. */
function modelInfo({ offer, firstSeenAt }: ListedModel, contextLength: number | null) {
  return {
    type: 'model',
    display_name: offer.display_name,
    created_at: new Date(firstSeenAt).toISOString(),
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: null,
    max_input_tokens: contextLength,
    max_tokens: contextLength,
  };
}

/** Maximum weights hashes per model, by descending number of providers. */
const MAX_WEIGHTS = 8;

/** Reported weights of the model, with the number of providers. Absent without reports. */
function weightsFacts(providers: ListedModel['providers']) {
  const counts = new Map<string, number>();
  for (const { offer } of providers) {
    const sha256 = offer?.file_sha256;
    if (sha256 !== undefined) counts.set(sha256, (counts.get(sha256) ?? 0) + 1);
  }
  if (counts.size === 0) return {};
  const weights = [...counts].map(([sha256, provider_count]) => ({ sha256, provider_count }));
  const order = (a: (typeof weights)[0], b: (typeof weights)[0]) => b.provider_count - a.provider_count || (a.sha256 < b.sha256 ? -1 : 1);
  return { weights: weights.sort(order).slice(0, MAX_WEIGHTS) };
}

/** Union of the providers' sizes, and their largest `max_images`. */
function imageFacts(providers: ListedModel['providers']) {
  const offers = providers.flatMap(({ offer }) => (offer?.model_type === 'image' ? (offer.image ?? []) : []));
  return {
    sizes: [...new Set(offers.flatMap(({ sizes }) => sizes))],
    max_images: Math.max(0, ...offers.map(({ max_images }) => max_images)),
  };
}
