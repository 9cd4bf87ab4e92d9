/** `GET /v1/network/models`: public list of the models that the network serves, with prices, measured performance and uptime. */
import type { Uptime } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import type { PriceRepository } from '../../billing/prices/price-repository.js';
import type { NetworkViews } from '../../cluster/views.js';
import type { ModelAvailabilityRepository, ModelUptime } from '../../database/model-availability-repository.js';
import {
  type ModelPerformance,
  NOT_MEASURED,
  networkPerformance,
  PerformancePartSchema,
} from '../../telemetry/statistics/model-performance.js';
import { TimedCache } from '../../telemetry/statistics/timed-cache.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { jsonResponse } from '../plugins/route-schemas.js';
import { networkModels } from './model-parts.js';
import { type ModelsView, modelEntry } from './models.js';

const MAX_LIST_AGE_MS = 60_000;

interface NetworkModelsDeps {
  readonly readModels: ModelsView;
  readonly views: NetworkViews;
  readonly performance: ModelPerformance;
  readonly availability: ModelAvailabilityRepository;
  readonly prices: Pick<PriceRepository, 'current'>;
  readonly now: () => number;
}

export function addNetworkModels(server: FastifyInstance, deps: NetworkModelsDeps): void {
  const { readModels, views, performance, availability, prices, now } = deps;
  // A part has the histograms of one coordinator.
  const readPerformance = views.define('model-performance', { query: Type.Null(), part: PerformancePartSchema }, () => performance.part());
  const cache = new TimedCache({
    maxAgeMs: MAX_LIST_AGE_MS,
    now,
    make: async (time) => {
      const [models, performances, uptimes] = await Promise.all([readModels(null), readPerformance(null), availability.read(time)]);
      const measured = networkPerformance(performances);
      const statisticsOf = (id: string) => ({ ...(measured.get(id) ?? NOT_MEASURED), uptime: uptimeBody(uptimes.get(id)) });
      return {
        updatedAt: new Date(time).toISOString(),
        models: networkModels(models).map((model) => ({ model, statistics: statisticsOf(model.id) })),
      };
    },
  });
  const schema = {
    summary: 'Served models, with prices, measured performance and uptime. Prices are current; the rest is at most one minute old.',
    tags: ['Models'],
    response: { 200: jsonResponse('NetworkModels') },
  };
  addPublicRoute(server, '/v1/network/models', schema, async (_request, reply) => {
    // A new price takes effect at once: the cache above has no prices, and HTTP caches must revalidate.
    reply.header('cache-control', 'no-cache');
    const { updatedAt, models } = (await cache.get()).value;
    return {
      object: 'list',
      updated_at: updatedAt,
      data: models.map(({ model, statistics }) => ({ ...modelEntry(model, prices), statistics })),
    };
  });
}

/** `share`: share of the periodic checks that found the model available. */
function uptimeBody(uptime: ModelUptime | undefined): Uptime | null {
  if (uptime === undefined) return null;
  const { share, checks, since, days } = uptime;
  const dated = days.map(({ at, share }) => ({ date: new Date(at).toISOString().slice(0, 10), share }));
  return { share, checks, since: new Date(since).toISOString(), days: dated };
}
