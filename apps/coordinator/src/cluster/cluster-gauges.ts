/** `registerClusterGauges`: gauges of the NATS connection, the peers and the links to them. */
import type { PeerLink } from './link/peer-link.js';
import type { PeerSummary } from './membership/membership.js';
import type { RoundTrips } from './round-trips.js';
import type { ClusterTransport } from './transport/cluster-transport.js';

type Reading<Label extends string> = readonly [Record<Label, string>, number];

interface GaugeRegistry {
  /** Registers a gauge whose value is read at each scrape. */
  gauge<Label extends string>(name: string, help: string, labels: readonly Label[], read: () => Iterable<Reading<Label>>): void;
}

interface ClusterState {
  readonly transport: Pick<ClusterTransport, 'isConnected' | 'bufferedBytes'>;
  readonly membership: { readonly peers: readonly PeerSummary[] };
  readonly links: { readonly links: ReadonlyMap<string, PeerLink> };
  readonly roundTrips: Pick<RoundTrips, 'latest'>;
  readonly now: () => number;
}

export function registerClusterGauges(metrics: GaugeRegistry, state: ClusterState): void {
  const { transport, membership, links, roundTrips, now } = state;
  const ofPeers = (name: string, help: string, read: (peer: PeerSummary) => number): void =>
    metrics.gauge(name, help, ['peer'], () => membership.peers.map((peer) => [{ peer: peer.id }, read(peer)]));
  const ofLinks = (name: string, help: string, read: (link: PeerLink) => number): void =>
    metrics.gauge(name, help, ['peer'], () => [...links.links.values()].map((link) => [{ peer: link.peer }, read(link)]));

  metrics.gauge('cluster_nats_connected', '1 while this coordinator is connected to a NATS server.', [], () => [
    [{}, transport.isConnected ? 1 : 0],
  ]);
  metrics.gauge('cluster_nats_buffered_bytes', 'Bytes for NATS that the operating system has not taken.', [], () => [
    [{}, transport.bufferedBytes],
  ]);
  metrics.gauge('cluster_peers', 'Live coordinators besides this one.', ['state'], () => {
    const draining = membership.peers.filter((peer) => peer.draining).length;
    return [
      [{ state: 'serving' }, membership.peers.length - draining],
      [{ state: 'draining' }, draining],
    ];
  });
  ofPeers('cluster_heartbeat_age_seconds', 'Time since the last heartbeat of a peer.', ({ heardAt }) => (now() - heardAt) / 1000);
  ofPeers(
    'cluster_clock_difference_seconds',
    "A peer's clock minus this coordinator's.",
    ({ clockDifferenceMs }) => clockDifferenceMs / 1000,
  );
  ofPeers('cluster_peer_providers', 'Providers connected to a peer.', ({ providers }) => providers);
  ofPeers('cluster_peer_models', 'Models that a peer serves.', ({ models }) => models);

  ofLinks('cluster_link_up', '1 while the link to a peer is up.', ({ state }) => (state === 'up' ? 1 : 0));
  ofLinks('cluster_link_streams', 'Open streams of a link.', ({ streamCount }) => streamCount);
  ofLinks('cluster_link_retained_bytes', 'Bytes retained for a peer: unacknowledged, queued and incomplete.', (link) => link.retainedBytes);
  ofLinks('cluster_link_losses', 'Losses of a link since its creation.', ({ counts }) => counts.losses);
  metrics.gauge('cluster_link_envelopes', 'Envelopes of a link since its creation, by outcome.', ['peer', 'outcome'], () =>
    [...links.links.values()].flatMap(envelopes),
  );
  metrics.gauge('cluster_link_round_trip_seconds', 'Latest round trip of a request to a peer.', ['peer'], () =>
    [...roundTrips.latest].map(([peer, ms]) => [{ peer }, ms / 1000]),
  );
}

function envelopes({ peer, counts, outbox }: PeerLink): Reading<'peer' | 'outcome'>[] {
  const { losses: _, ...envelopeCounts } = counts;
  const current = { ...envelopeCounts, retransmitted: counts.retransmitted + outbox.retransmittedCount };
  return Object.entries(current).map(([outcome, count]) => [{ peer, outcome }, count]);
}
