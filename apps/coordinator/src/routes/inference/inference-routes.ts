/** `inferenceRoutes` registers the routes of inference, token counting, image files, model lists, receipts and the catalogue. */
import type { FastifyPluginAsync } from 'fastify';
import type { PriceRepository } from '../../billing/prices/price-repository.js';
import type { NetworkViews } from '../../cluster/views.js';
import type { FailedRequestRepository } from '../../database/failed-request-repository.js';
import type { ModelAvailabilityRepository } from '../../database/model-availability-repository.js';
import type { CatalogueRepository } from '../../database/providers/catalogue-repository.js';
import type { ReceiptRepository } from '../../database/providers/receipt-repository.js';
import type { DeferredReceipts } from '../../images/deferred-receipts.js';
import type { ImageStore } from '../../images/image-store.js';
import { SendQueues } from '../../inference/delivery/send-queues.js';
import type { Tracer } from '../../inference/job-observer.js';
import type { JobRunner } from '../../inference/job-runner.js';
import type { JobTimings } from '../../inference/job-timings.js';
import type { NetworkModels } from '../../inference/placements.js';
import type { ImageSupply } from '../../inference/queue/image-supply.js';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import { CountTokensLimit } from '../../inference/request/count-tokens-limit.js';
import { FreeRefusals } from '../../inference/request/free-refusals.js';
import type { ImageFetcher } from '../../inference/request/image-fetcher.js';
import type { PrefixHashes } from '../../inference/request/prefix-hashes.js';
import type { NetworkLimit, NetworkLimits } from '../../limits/network-limits.js';
import type { Log } from '../../log.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { addCatalogue } from './catalogue.js';
import { addTextEndpoints } from './endpoints.js';
import { addImageFiles } from './image-files.js';
import { addImages } from './image-generations.js';
import { addModels, defineModelsView } from './models.js';
import { addNetworkModels } from './network-models.js';
import { addReceipts } from './receipts.js';
import { addSealedRequests } from './sealed-requests.js';

interface InferenceRoutesDeps {
  readonly runner: JobRunner;
  readonly prefixHashes: PrefixHashes;
  readonly requestQueue: RequestQueue;
  readonly imageSupply: ImageSupply;
  readonly imageStore: ImageStore;
  readonly receipts: ReceiptRepository;
  readonly deferredReceipts: DeferredReceipts;
  readonly failedRequests: FailedRequestRepository;
  readonly providers: ProviderRegistry;
  /** Models of the whole network. */
  readonly directory: NetworkModels;
  readonly views: NetworkViews;
  readonly catalogue: CatalogueRepository;
  readonly prices: PriceRepository;
  readonly availability: ModelAvailabilityRepository;
  readonly timings: JobTimings;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  readonly log: Log;
  readonly now: () => number;
  readonly catalogueOnly: boolean;
  /** Fetches images at URLs in requests. Null: such requests are refused. */
  readonly imageFetcher: Pick<ImageFetcher, 'fetchAll'> | null;
  /** Free token counting: maximum bytes per account and minute. */
  readonly countTokensBytesPerMinute: number;
  /** Null outside a cluster. */
  readonly networkLimits: NetworkLimits | null;
  /** Maximum wait for an image provider, in milliseconds. */
  readonly imageQueueMs: number;
  /** Origin of image URLs, such as `https://gateway.example`. Null stands for the origin of the request. */
  readonly publicOrigin: string | null;
}

export const inferenceRoutes: FastifyPluginAsync<InferenceRoutesDeps> = async (server, deps) => {
  const { runner, prefixHashes, receipts, deferredReceipts, failedRequests, timings, log, now, metrics, tracer, providers, views } = deps;
  const inference = { runner, receipts, failedRequests, timings, prefixHashes, log, now, metrics, tracer };
  const countTokens = {
    countTokensLimit: new CountTokensLimit({ bytesPerMinute: deps.countTokensBytesPerMinute }),
    countTokensNetworkLimit: countTokensNetworkLimit(deps),
  };
  const sendQueues = new SendQueues();
  addTextEndpoints(server, { ...inference, ...countTokens, sendQueues, imageFetcher: deps.imageFetcher });
  addSealedRequests(server, {
    ...inference,
    sendQueues,
    ...countTokens,
    imageFetcher: null,
    freeRefusals: new FreeRefusals(now),
    directory: deps.directory,
  });
  addImages(server, {
    ...inference,
    store: deps.imageStore,
    deferredReceipts,
    supply: deps.imageSupply,
    queueMs: deps.imageQueueMs,
    publicOrigin: deps.publicOrigin,
  });
  addImageFiles(server, { store: deps.imageStore, metrics, now });
  const { requestQueue, directory, prices, availability } = deps;
  const readModels = defineModelsView(views, providers);
  addModels(server, { registry: providers, requestQueue, directory, views, readModels, prices });
  addNetworkModels(server, { readModels, views, performance: metrics.modelPerformance, availability, prices, now });
  addReceipts(server, deferredReceipts, views);
  addCatalogue(server, { catalogue: deps.catalogue, prices: deps.prices, exclusive: deps.catalogueOnly });
};

/** Limit on bytes of token counting per account and minute in the whole cluster. Null outside a cluster, or without a limit. */
function countTokensNetworkLimit({ networkLimits, countTokensBytesPerMinute: max }: InferenceRoutesDeps): NetworkLimit | null {
  return networkLimits === null || max === 0 ? null : networkLimits.define('bytes of token counting', { max, windowMs: 60_000 });
}
