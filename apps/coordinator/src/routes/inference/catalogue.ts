/** Routes of the catalogue, the operator's list of models with files and prices: `/v1/catalogue` and `/admin/v1/catalogue`. */
import {
  type AdminCatalogue,
  type AdminCatalogueEntry,
  AdminCatalogueEntrySchema,
  AdminCatalogueSchema,
  apiError,
  RequestError,
  readJsonBody,
  schemaCheck,
} from '@inference/formats';
import { lazyValidator, ModelOfferSchema } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type, { type Static } from 'typebox';
import { microUsd } from '../../billing/micro-usd.js';
import type { NewPrice, PriceRepository } from '../../billing/prices/price-repository.js';
import type { CatalogueEntry, CatalogueRepository } from '../../database/providers/catalogue-repository.js';
import { ratesBody } from '../billing/prices.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { jsonResponse, pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';
import { CatalogueChangeSchema } from './catalogue-schemas.js';

const MAX_BODY_BYTES = 16_384;

const modelId = lazyValidator(ModelOfferSchema.properties.id);
const RemovedSchema = Type.Object({ id: Type.String(), removed: Type.Literal(true) });
const checkChange = schemaCheck(CatalogueChangeSchema);

interface CatalogueRoutes {
  readonly catalogue: CatalogueRepository;
  readonly prices: PriceRepository;
  /** Whether models outside the catalogue are rejected. */
  readonly exclusive: boolean;
}

export function addCatalogue(server: FastifyInstance, routes: CatalogueRoutes): void {
  const { catalogue, prices, exclusive } = routes;
  const catalogueBody = (): AdminCatalogue => ({
    object: 'list',
    exclusive,
    currency: 'micro_usd',
    data: [...catalogue.entries.values()].map((entry) => entryBody(entry, prices)),
  });
  const listSchema = {
    summary: 'Models that the operator lists, with their files and prices.',
    tags: ['Models'],
    response: { 200: jsonResponse('Catalogue') },
  };
  addPublicRoute(server, '/v1/catalogue', listSchema, async (_request, reply) => {
    reply.header('cache-control', 'no-cache');
    return catalogueBody();
  });
  const options = { onRequest: server.guards.admin, bodyLimit: MAX_BODY_BYTES };
  server.get('/admin/v1/catalogue', { ...options, schema: { response: { 200: AdminCatalogueSchema } } }, async () => catalogueBody());
  const putSchema = { params: pathParams('id'), body: CatalogueChangeSchema, response: { 200: AdminCatalogueEntrySchema } };
  server.put<{ Params: { '*': string } }>('/admin/v1/catalogue/*', { ...options, schema: putSchema }, async (request) => {
    const id = modelOf(request.params['*']);
    const change = checkChange(readJsonBody(bytesOf(request)));
    if ((change.prices?.cached_per_million ?? 0) > (change.prices?.prompt_per_million ?? 0)) {
      const message = 'prices.cached_per_million must not exceed prices.prompt_per_million.';
      throw new RequestError('invalid_request', 'prices.cached_per_million', message);
    }
    const price = change.prices === undefined ? null : newPrice(id, change.prices);
    await catalogue.put(
      {
        id,
        displayName: change.display_name,
        quantization: change.quantization,
        modelType: change.model_type ?? 'text',
        minMemoryBytes: change.min_memory_bytes ?? null,
        fileSha256: change.file_sha256 ?? [],
      },
      // `prices.set` writes price and entry in one transaction, so that neither is stored alone.
      price === null ? undefined : (writeEntry) => prices.set(price, writeEntry),
    );
    const entry = catalogue.entries.get(id);
    if (entry === undefined) throw new RequestError('conflict', 'model', 'The model was removed from the catalogue in the meantime.');
    return entryBody(entry, prices);
  });
  server.delete<{ Params: { '*': string } }>(
    '/admin/v1/catalogue/*',
    { onRequest: server.guards.admin, schema: { params: pathParams('id'), response: { 200: RemovedSchema } } },
    async (request, reply) => {
      const id = modelOf(request.params['*']);
      if (await catalogue.remove(id)) return { id, removed: true };
      return sendError(reply, apiError('not_found', { message: 'The catalogue does not list this model.' }));
    },
  );
}

function modelOf(text: string): string {
  if (modelId().Check(text)) return text;
  throw new RequestError('invalid_request', 'model', 'model must be the id of a model.');
}

function newPrice(model: string, prices: NonNullable<Static<typeof CatalogueChangeSchema>['prices']>): NewPrice {
  const { prompt_per_million, cached_per_million, completion_per_million, per_image } = prices;
  return {
    model,
    promptPerMillion: microUsd(prompt_per_million),
    cachedPerMillion: cached_per_million === undefined ? null : microUsd(cached_per_million),
    completionPerMillion: microUsd(completion_per_million),
    perImage: microUsd(per_image ?? 0),
  };
}

function entryBody(entry: CatalogueEntry, prices: PriceRepository): AdminCatalogueEntry {
  const price = prices.current(entry.id);
  return {
    id: entry.id,
    display_name: entry.displayName,
    quantization: entry.quantization,
    model_type: entry.modelType,
    min_memory_bytes: entry.minMemoryBytes,
    file_sha256: [...entry.fileSha256],
    prices: ratesBody(price),
    updated_at: new Date(entry.updatedAt).toISOString(),
  };
}
