/** `openInference` creates the services that run jobs, and joins the cluster, if any. */
import type { TrustLevel } from '@inference/protocol';
import { EncapsulationPool } from '../inference/attempt/sealing/encapsulation-pool.js';
import { JobRunner } from '../inference/job-runner.js';
import { MAX_WAITING_PER_MODEL } from '../inference/job-timings.js';
import { ImageSupply } from '../inference/queue/image-supply.js';
import { RequestQueue } from '../inference/queue/request-queue.js';
import { errorFacts } from '../log.js';
import { registerImageGauges, registerProviderGauges } from '../telemetry/gauges.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { BillingServices } from './billing.js';
import { type ClusterServices, openCluster } from './cluster.js';
import type { Repositories } from './database.js';
import type { ImageServices } from './images.js';
import type { ProviderServices } from './providers.js';
import type { StartContext } from './start-context.js';

export interface InferenceServices {
  readonly requestQueue: RequestQueue;
  readonly imageSupply: ImageSupply;
  readonly runner: JobRunner;
  readonly cluster: ClusterServices;
}

interface InferenceDeps {
  readonly repositories: Repositories;
  readonly billing: BillingServices;
  readonly images: ImageServices;
  readonly providers: ProviderServices;
  readonly metrics: Metrics;
}

export async function openInference(context: StartContext, deps: InferenceDeps): Promise<InferenceServices> {
  const { config, options, log, now, jobTimings, disposal } = context;
  const { metrics } = deps;
  const { providers, recentlySeenModels, endedSessions } = deps.providers;
  const trustFloor = trustFloorPolicy(config.hardwareOnlyModels);
  const requestQueue = new RequestQueue(providers, options.maxWaitingPerModel ?? MAX_WAITING_PER_MODEL, trustFloor);
  const cluster = await openCluster(context, { providers: deps.providers, requestQueue, images: deps.images.imageStore, metrics });
  const imageSupply = new ImageSupply(cluster.models, recentlySeenModels);
  const encapsulationPool = new EncapsulationPool({
    onError: (error) => log.warn({ error: errorFacts(error) }, 'the sealing thread has ended; jobs are sealed without it'),
  });
  disposal.defer(() => encapsulationPool.close());
  const runner = new JobRunner({
    registry: providers,
    models: cluster.models,
    placements: cluster.placements,
    onRequest: (model) => providers.placement.reports.requestReceived(model),
    recentlySeenModels,
    imageSupply,
    billing: deps.billing.billing,
    timings: jobTimings,
    hedgePercent: config.hedgePercent,
    trustFloor,
    cacheScopes: deps.repositories.cacheScopes,
    encapsulationPool,
    now,
    observer: metrics,
    random: context.random,
    onImageStoreError: (error) => log.error({ error: errorFacts(error) }, 'images could not be stored'),
  });
  registerProviderGauges(metrics, providers, requestQueue, endedSessions);
  registerImageGauges(metrics, deps.images.imageStore, imageSupply);
  return { requestQueue, imageSupply, runner, cluster };
}

/** Returns a model's minimum trust level by the setting `HARDWARE_ONLY_MODELS`. Null means any level. */
function trustFloorPolicy(models: readonly string[]): (model: string) => TrustLevel | null {
  const hardwareOnly = new Set(models);
  return (model) => (hardwareOnly.has('*') || hardwareOnly.has(model) ? 'hardware' : null);
}
