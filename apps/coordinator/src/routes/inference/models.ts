/**
 * `GET /v1/models` and `GET /v1/models/{id}`, with the members of OpenAI's, OpenRouter's and, for its clients, Anthropic's model lists.
 *
 * The response about one model also has its current demand.
 */
import { documentedErrors, RequestError } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import Type, { type Static } from 'typebox';
import type { PriceRepository } from '../../billing/prices/price-repository.js';
import type { NetworkViews, View } from '../../cluster/views.js';
import type { NetworkModels } from '../../inference/placements.js';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import { unknownModel } from '../../inference/request/unknown-model.js';
import { MAX_LISTED_MODELS } from '../../providers/placement/listed-models.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { queryErrorExample, queryReader } from '../parameters/query.js';
import { jsonResponse, KEY_ERRORS, pathParams } from '../plugins/route-schemas.js';
import { isAnthropicClient, sendError } from '../plugins/send-error.js';
import {
  demandOf,
  ModelDemandSchema,
  type ModelPart,
  ModelPartsSchema,
  modelPart,
  networkDemand,
  networkModel,
  networkModels,
} from './model-parts.js';
import { ModelListQuerySchema } from './model-schemas.js';
import { openRouterMembers } from './open-router-members.js';

const OWNED_BY = 'inference-network';

type ListQuery = Static<typeof ModelListQuerySchema>;
const readListQuery = queryReader(ModelListQuerySchema);

interface ModelRoutes {
  readonly registry: ProviderRegistry;
  readonly requestQueue: RequestQueue;
  /** Models of the whole network. */
  readonly directory: Pick<NetworkModels, 'listedNames'>;
  readonly views: NetworkViews;
  readonly readModels: ModelsView;
  readonly prices: Pick<PriceRepository, 'current'>;
}

/** Reads the model list of each coordinator of the network. */
export type ModelsView = View<null, readonly ModelPart[]>;

export function defineModelsView(views: NetworkViews, registry: ProviderRegistry): ModelsView {
  return views.define('models', { query: Type.Null(), part: ModelPartsSchema }, () =>
    registry.models.listing().models.map((model) => modelPart(model, registry)),
  );
}

export function modelEntry(model: ModelPart, prices: ModelRoutes['prices']) {
  return { ...ownMembers(model), ...openRouterMembers(model, prices.current(model.id)) };
}

export function addModels(server: FastifyInstance, routes: ModelRoutes): void {
  addModelList(server, routes);
  addModelDetails(server, routes);
}

function addModelList(server: FastifyInstance, { readModels, prices }: ModelRoutes): void {
  const schema = {
    summary: `Models that are served now, ${MAX_LISTED_MODELS} at most. limit, after_id and before_id select a page.`,
    tags: ['Models'],
    querystring: ModelListQuerySchema,
    response: {
      200: jsonResponse('ModelList'),
      ...documentedErrors(['invalid_request', ...KEY_ERRORS], 'OpenAiError', queryErrorExample(ModelListQuerySchema, 'limit')),
    },
  };
  server.get('/v1/models', { schema, onRequest: server.guards.account }, async (request) => {
    const query = readListQuery(request.url);
    const { models, hasMore } = pageOf(networkModels(await readModels(null)), query);
    const isAnthropic = isAnthropicClient(request);
    const data = models.map((model) => ({ ...modelEntry(model, prices), ...(isAnthropic ? anthropicInfo(model) : {}) }));
    const list = { object: 'list', data };
    // OpenAI's list has no members for pages, so they appear only on request.
    if (!isAnthropic && Object.keys(query).length === 0) return list;
    return { ...list, has_more: hasMore, first_id: data.at(0)?.id ?? null, last_id: data.at(-1)?.id ?? null };
  });
}

function addModelDetails(server: FastifyInstance, { registry, requestQueue, directory, views, prices }: ModelRoutes): void {
  const readModel = views.define('model', { query: Type.String({ maxLength: 512 }), part: ModelDemandSchema }, (id) => {
    const model = registry.models.find(id);
    return { model: model === null ? null : modelPart(model, registry), demand: demandOf(id, registry, requestQueue) };
  });
  const schema = {
    summary: 'One model that is served now, with its demand. The id may contain slashes.',
    tags: ['Models'],
    params: pathParams('id'),
    response: { 200: jsonResponse('Model'), ...documentedErrors([...KEY_ERRORS, 'model_not_found']) },
  };
  // A wildcard, because model ids may contain slashes.
  server.get<{ Params: { '*': string } }>('/v1/models/*', { schema, onRequest: server.guards.account }, async (request, reply) => {
    const id = request.params['*'];
    const parts = await readModel(id);
    const model = networkModel(parts.flatMap(({ model }) => model ?? []));
    if (model === null) {
      sendError(reply, unknownModel(id, directory.listedNames()));
      return reply;
    }
    const { metadata, ...entry } = modelEntry(model, prices);
    const anthropicMembers = isAnthropicClient(request) ? anthropicInfo(model) : {};
    return { ...entry, ...anthropicMembers, metadata: { ...metadata, ...networkDemand(parts.map(({ demand }) => demand)) } };
  });
}

/** A page of the list, which is sorted by id. Throws RequestError if both ends are given. */
function pageOf(
  listed: readonly ModelPart[],
  { limit = MAX_LISTED_MODELS, after_id: afterId, before_id: beforeId }: ListQuery,
): { readonly models: readonly ModelPart[]; readonly hasMore: boolean } {
  if (afterId !== undefined && beforeId !== undefined) {
    throw new RequestError('invalid_request', 'before_id', 'Give after_id or before_id, not both.');
  }
  const rest = listed.filter(({ id }) => (afterId === undefined || id > afterId) && (beforeId === undefined || id < beforeId));
  const models = beforeId === undefined ? rest.slice(0, limit) : rest.slice(-limit);
  return { models, hasMore: models.length < rest.length };
}

/** Maximum hashes of weights (model files) per model. Those that the most providers report are listed. */
const MAX_WEIGHTS = 8;

/** Members of OpenAI's model list, and this network's `metadata`. */
function ownMembers(model: ModelPart) {
  const { sizes, max_images, vision, weights } = model;
  return {
    id: model.id,
    object: 'model',
    created: Math.floor(model.first_seen_at / 1000),
    owned_by: OWNED_BY,
    metadata: {
      model_type: model.model_type,
      quantization: model.quantization,
      provider_count: model.providers,
      attested_providers: model.attested,
      ...(model.hardware === undefined ? {} : { hardware_providers: model.hardware }),
      trust_level: model.has_hardware_trust ? 'hardware' : 'self_signed',
      display_name: model.display_name,
      ...(model.model_type === 'image' ? { sizes, max_images } : {}),
      ...(vision === undefined ? {} : { max_input_images: vision.max_images, max_image_tokens: vision.max_image_tokens }),
      ...(weights.length === 0 ? {} : { weights: weights.slice(0, MAX_WEIGHTS) }),
    },
    ...limitsOf(model),
  };
}

/** Token limits of the provider with the largest context. None for image models. */
function limitsOf({ model_type, context_length }: ModelPart) {
  return model_type === 'image' ? {} : { context_length, max_output_tokens: model_type === 'text' ? context_length : null };
}

/** Members of Anthropic's model list. Null without a value in this network. */
function anthropicInfo({ display_name, first_seen_at, context_length }: ModelPart) {
  return {
    type: 'model',
    display_name,
    created_at: new Date(first_seen_at).toISOString(),
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: null,
    max_input_tokens: context_length,
    max_tokens: context_length,
  };
}
