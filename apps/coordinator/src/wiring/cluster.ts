/** `openCluster` joins the cluster if `NATS_URL` is set. Otherwise, local services take the place of the cluster's. */
import { LOCAL_VIEWS, type NetworkViews } from '../cluster/views.js';
import type { ImageStore } from '../images/image-store.js';
import type { NetworkModels, Placements } from '../inference/placements.js';
import type { RequestQueue } from '../inference/queue/request-queue.js';
import type { NetworkLimits } from '../limits/network-limits.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { ProviderServices } from './providers.js';
import type { StartContext } from './start-context.js';

/** Services that differ between a cluster (several coordinators of one network) and a single coordinator. */
export interface ClusterServices {
  /** Reserves slots of providers, also of those connected to peers (other live coordinators). */
  readonly placements: Placements;
  readonly models: NetworkModels;
  /** Asks each coordinator for its part of some data, such as its models. */
  readonly views: NetworkViews;
  /** Number of a model's known providers at peers. */
  readonly servingAtPeers: (model: string) => number;
  /** Number of peers that are not shutting down. */
  readonly peerCount: () => number;
  /** Limits that all coordinators count together. Null outside a cluster. */
  readonly limits: NetworkLimits | null;
  /** Sends an owner's command to a machine, through the coordinator to which it is connected. Null: not connected. Never rejects. */
  readonly executeOwnerCommand: ProviderRegistry['executeOwnerCommand'];
  /** Tells peers that this coordinator is shutting down. */
  readonly announceDrain: () => void;
  /** Resolves when no work for peers is running here, such as a peer's job on a local provider. */
  readonly whenPeersServed: () => Promise<void>;
}

export interface ClusterDeps {
  readonly providers: ProviderServices;
  readonly requestQueue: RequestQueue;
  readonly images: ImageStore;
  readonly metrics: Metrics;
}

export async function openCluster(context: StartContext, deps: ClusterDeps): Promise<ClusterServices> {
  const { cluster } = context.config;
  const { providers } = deps.providers;
  if (cluster === null) {
    return {
      placements: deps.requestQueue,
      models: providers.models,
      views: LOCAL_VIEWS,
      servingAtPeers: () => 0,
      peerCount: () => 0,
      limits: null,
      executeOwnerCommand: (providerId, request) => providers.executeOwnerCommand(providerId, request),
      announceDrain: () => {},
      whenPeersServed: () => Promise.resolve(),
    };
  }
  // Imported on demand, so that a single coordinator loads none of the cluster's code.
  const { joinCluster } = await import('./join-cluster.js');
  return joinCluster(context, cluster, deps);
}
