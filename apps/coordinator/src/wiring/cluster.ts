/** Joins the cluster if `NATS_URL` is set. Otherwise none of the cluster code is loaded. */
import { LOCAL_VIEWS, type NetworkViews } from '../cluster/views.js';
import type { ImageStore } from '../images/image-store.js';
import type { NetworkModels, Placements } from '../inference/placements.js';
import type { RequestQueue } from '../inference/queue/request-queue.js';
import type { NetworkLimits } from '../limits/network-limits.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { ProviderServices } from './providers.js';
import type { StartContext } from './start-context.js';

export interface ClusterServices {
  readonly placements: Placements;
  readonly models: NetworkModels;
  readonly views: NetworkViews;
  /** Number of known providers of a model at other coordinators. */
  readonly servingAtPeers: (model: string) => number;
  /** Number of live peers; 0 outside a cluster. */
  readonly peerCount: () => number;
  /** Limits that all coordinators count together; null outside a cluster. */
  readonly limits: NetworkLimits | null;
  /** Executes an owner command at the coordinator to which the machine is connected. Null: not connected. Never rejects. */
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
  const { joinCluster } = await import('./join-cluster.js');
  return joinCluster(context, cluster, deps);
}
