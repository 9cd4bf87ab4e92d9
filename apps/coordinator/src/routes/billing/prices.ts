/** `/v1/prices`: public prices of the models that are served now. `/admin/v1/prices`: operators list and set prices, also future ones. */
import {
  type AdminPrice,
  type AdminPriceHistory,
  AdminPriceHistorySchema,
  type AdminPriceList,
  AdminPriceListSchema,
  AdminPriceSchema,
  RequestError,
  readJsonBody,
  schemaCheck,
} from '@inference/formats';
import { lazyValidator, ModelOfferSchema } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { microUsd } from '../../billing/micro-usd.js';
import { cachedRate, type Price, type Rates } from '../../billing/prices/price.js';
import { ANY_MODEL, type PriceRepository } from '../../billing/prices/price-repository.js';
import type { NetworkViews } from '../../cluster/views.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { parseTime } from '../parameters/times.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { jsonResponse, pathParams } from '../plugins/route-schemas.js';
import { PriceChangeSchema } from './payment-schemas.js';

const MAX_BODY_BYTES = 4096;

const modelId = lazyValidator(ModelOfferSchema.properties.id);
/** Ids of the models served by one coordinator. */
const ServedModelsSchema = Type.Array(ModelOfferSchema.properties.id, { maxItems: 1_000_000 });
const checkChange = schemaCheck(PriceChangeSchema);

interface PriceRoutes {
  readonly prices: PriceRepository;
  readonly registry: Pick<ProviderRegistry, 'models'>;
  readonly views: NetworkViews;
  readonly now: () => number;
}

export function addPrices(server: FastifyInstance, { prices, registry, views, now }: PriceRoutes): void {
  const readServed = views.define('served-models', { query: Type.Null(), part: ServedModelsSchema }, () =>
    registry.models.list().map(({ offer }) => offer.id),
  );
  const listSchema = { summary: 'Prices of the models that are served now.', tags: ['Models'], response: { 200: jsonResponse('Prices') } };
  addPublicRoute(server, '/v1/prices', listSchema, async (_request, reply) => {
    // A new price takes effect at once, so caches must not keep the old price.
    reply.header('cache-control', 'no-cache');
    const models = [...new Set((await readServed(null)).flat())].sort((a, b) => (a < b ? -1 : 1));
    return { object: 'list', currency: 'micro_usd', data: models.map((model) => ({ model, ...ratesBody(prices.current(model)) })) };
  });
  const options = { onRequest: server.guards.admin, bodyLimit: MAX_BODY_BYTES };
  server.get(
    '/admin/v1/prices',
    { ...options, schema: { response: { 200: AdminPriceListSchema } } },
    async (): Promise<AdminPriceList> => ({ object: 'list', currency: 'micro_usd', data: prices.list().map(priceBody) }),
  );
  // Wildcards, because model ids may contain slashes.
  const historySchema = { params: pathParams('id'), response: { 200: AdminPriceHistorySchema } };
  server.get<{ Params: { '*': string } }>(
    '/admin/v1/prices/*',
    { ...options, schema: historySchema },
    async (request): Promise<AdminPriceHistory> => {
      const model = modelOf(request.params['*']);
      const history = await prices.history(model);
      return { model, current: ratesBody(prices.current(model)), history: history.map(priceBody) };
    },
  );
  const putSchema = { params: pathParams('id'), body: PriceChangeSchema, response: { 200: AdminPriceSchema } };
  server.put<{ Params: { '*': string } }>('/admin/v1/prices/*', { ...options, schema: putSchema }, async (request) => {
    const model = modelOf(request.params['*']);
    const { valid_from, ...change } = checkChange(readJsonBody(bytesOf(request)));
    const validFrom = parseTime('valid_from', valid_from);
    if (validFrom !== undefined && validFrom < now()) {
      throw new RequestError(
        'invalid_request',
        'valid_from',
        'valid_from must not be in the past. Omit valid_from for a price from now on.',
      );
    }
    if ((change.cached_per_million ?? 0) > change.prompt_per_million) {
      throw new RequestError('invalid_request', 'cached_per_million', 'cached_per_million must not exceed prompt_per_million.');
    }
    const rates = {
      promptPerMillion: microUsd(change.prompt_per_million),
      cachedPerMillion: change.cached_per_million === undefined ? null : microUsd(change.cached_per_million),
      completionPerMillion: microUsd(change.completion_per_million),
      perImage: microUsd(change.per_image),
    };
    return priceBody(await prices.set({ model, ...rates, ...(validFrom === undefined ? {} : { validFrom }) }));
  });
}

function modelOf(text: string): string {
  if (text === ANY_MODEL || modelId().Check(text)) return text;
  throw new RequestError('invalid_request', 'model', 'model must be the id of a model, or * for every model without a price of its own.');
}

/** Without a rate for cached tokens, `cached_per_million` is the default rate (`cachedRate`). */
export function ratesBody(rates: Rates): RatesBody {
  return {
    prompt_per_million: rates.promptPerMillion,
    cached_per_million: cachedRate(rates),
    completion_per_million: rates.completionPerMillion,
    per_image: rates.perImage,
  };
}

type RatesBody = Pick<AdminPrice, 'prompt_per_million' | 'cached_per_million' | 'completion_per_million' | 'per_image'>;

function priceBody(price: Price): AdminPrice {
  return { id: price.id, model: price.model, ...ratesBody(price), valid_from: new Date(price.validFrom).toISOString() };
}
