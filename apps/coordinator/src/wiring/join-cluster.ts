/**
 * `joinCluster` connects to NATS, and creates the services of a coordinator in a cluster.
 *
 * A peer is another live coordinator. `Membership` tracks the peers, and a link transfers requests and streams between two coordinators.
 */
import { accessSync, constants } from 'node:fs';
import { registerClusterGauges } from '../cluster/cluster-gauges.js';
import { ClusterViews } from '../cluster/cluster-views.js';
import { fetchImage, serveImage } from '../cluster/images.js';
import { encodeMessage } from '../cluster/json-message.js';
import type { PeerLink } from '../cluster/link/peer-link.js';
import { PeerLinks } from '../cluster/link/peer-links.js';
import { fetchModels, MODELS, serveModels } from '../cluster/membership/all-models.js';
import { CLUSTER_VERSION } from '../cluster/membership/heartbeat.js';
import { type Broadcast, Membership, type MembershipEvents, type RefusedHeartbeat } from '../cluster/membership/membership.js';
import { Nudges } from '../cluster/nudges.js';
import { executeInCluster, serveOwnerCommand } from '../cluster/owner-commands.js';
import { type Peer, PeerStream } from '../cluster/peer.js';
import { NetworkPermits } from '../cluster/permits/network-permits.js';
import { ClusterModels } from '../cluster/placement/cluster-models.js';
import { ClusterPlacements } from '../cluster/placement/cluster-placements.js';
import { MovedProviders } from '../cluster/placement/moved-providers.js';
import { PlacementClient } from '../cluster/placement/placement-client.js';
import { PlacementServer } from '../cluster/placement/placement-server.js';
import { PrefixHints } from '../cluster/placement/prefix-hints.js';
import type { DescriptionRules } from '../cluster/placement/provider-description.js';
import { publishedModels } from '../cluster/placement/published-models.js';
import { RoundTrips } from '../cluster/round-trips.js';
import type { ClusterSettings } from '../cluster/settings.js';
import { NatsTransport, type NatsTransportOptions } from '../cluster/transport/nats-transport.js';
import { errorReason, StartupError } from '../config/startup-error.js';
import { errorFacts, type Log } from '../log.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import { maxChallengeAge, SESSION_TIMINGS } from '../providers/session/session-options.js';
import { MAX_MANAGEMENT_AGE_MS } from '../providers/verification/trust-policy.js';
import { WaitGroup } from '../wait-group.js';
import type { ClusterDeps, ClusterServices } from './cluster.js';
import type { StartContext } from './start-context.js';

/** Maximum time for a peer to grant permits (rights to count requests against a limit of the whole network). */
const PERMITS_TIMEOUT_MS = 500;
/** Time after a reconnect to NATS in which each live peer has sent a heartbeat. */
const HEARTBEATS_ARRIVAL_MS = 2500;
/** Time for the last message to reach the peers before the connection is closed. */
const GOODBYE_MS = 250;

/** At shutdown, `context.disposal` announces the departure to the peers and disconnects. */
export async function joinCluster(context: StartContext, settings: ClusterSettings, deps: ClusterDeps): Promise<ClusterServices> {
  const { log, now, changeHints, disposal } = context;
  const { providers } = deps.providers;
  const connection = connect(settings, log);
  const { self, transport, links, broadcast } = connection;
  const permits = createPermits(connection);
  const updatePermits = (): void => permits.coordinatorsChanged([self, ...membership.peers.map(({ id }) => id)]);
  const membership: Membership = createMembership(context, deps, connection, { updatePermits, placement: () => placement });
  const peers = peersOf(membership, links);
  const placement = createPlacement(context, deps, connection, membership, peers);
  const views = new ClusterViews({ peers: peers.live });
  deps.providers.onJoined = (provider) => placement.moved.announce(provider);
  deps.images.fetchFromPeers = (name) => fetchImage(peers.live(), name);
  serveRequests(links, providers, { membership, permits, ...placement });
  const served = serveStreams(links, log, {
    placement: (stream, header) => placement.server.serve(stream, header),
    view: (stream, header) => views.serve(stream, header),
    image: (stream, header) => serveImage(deps.images, stream, header),
    [MODELS]: (stream) => serveModels(membership, stream),
  });
  const nudges = new Nudges({ self, broadcast, hints: changeHints });
  const stopPublishing = publishChanges(providers, placement.prefixes, membership);
  const roundTrips = new RoundTrips(links);
  registerClusterGauges(deps.metrics, { transport, membership, links, roundTrips, now });
  const stopWatchingTransport = watchReconnects(transport, { onConnected: () => membership.announce(), onHeartbeats: updatePermits });
  disposal.defer(async () => {
    roundTrips.close();
    stopPublishing();
    placement.prefixes.close();
    stopWatchingTransport();
    nudges.close();
    await sayGoodbye(membership);
    links.close();
    await transport.close();
  });
  log.info({ coordinator: self, servers: settings.servers.length }, 'cluster joined');
  return {
    placements: placement.placements,
    models: placement.clusterModels,
    views,
    limits: permits,
    executeOwnerCommand: (providerId, request) => executeInCluster(providers, peers.live(), providerId, request),
    servingAtPeers: (model) => placement.clusterModels.servingAtPeers(model),
    peerCount: () => membership.peers.filter(({ draining }) => !draining).length,
    announceDrain: () => membership.modelsChanged(),
    whenPeersServed: () => served.wait(),
  };
}

interface Connection {
  /** Id of this coordinator. */
  readonly self: string;
  readonly transport: NatsTransport;
  readonly links: PeerLinks;
  readonly broadcast: Broadcast;
}

function connect(settings: ClusterSettings, log: Log): Connection {
  const self = settings.id;
  const transport = openTransport(settings, log);
  const links = new PeerLinks({ self, transport, log: ({ event, ...facts }) => log.info({ link: event, ...facts }, 'cluster link') });
  const broadcast: Broadcast = {
    publish: (subject, bytes) => void transport.publish(subject, bytes),
    subscribe: (pattern, handler) => transport.subscribe(pattern, handler),
  };
  return { self, transport, links, broadcast };
}

function createPermits({ self, transport, links }: Connection): NetworkPermits {
  return new NetworkPermits({
    self,
    request: (id, payload) => links.link(id).request('permits', payload, { timeoutMs: PERMITS_TIMEOUT_MS }),
    isConnected: () => transport.isConnected,
  });
}

function createMembership(
  context: StartContext,
  deps: ClusterDeps,
  { self, transport, links, broadcast }: Connection,
  createdLater: Pick<MembershipEventDeps, 'updatePermits' | 'placement'>,
): Membership {
  const { now, isDraining } = context;
  const { providers } = deps.providers;
  return new Membership({
    self,
    broadcast,
    models: () => publishedModels(providers, deps.requestQueue),
    providers: () => providers.connections,
    isDraining,
    requestModels: async (id) => fetchModels(peerOver(links.link(id))),
    events: membershipEvents(context, deps, { links, transport, ...createdLater }),
    now,
  });
}

interface Peers {
  /** Returns null if the coordinator is not live. */
  readonly find: (id: string) => Peer | null;
  readonly live: () => Peer[];
}

function peersOf(membership: Membership, links: PeerLinks): Peers {
  const find = (id: string): Peer | null => (membership.isLive(id) ? peerOver(links.link(id)) : null);
  return { find, live: () => membership.peers.flatMap(({ id }) => find(id) ?? []) };
}

/** Services that place local requests at peers, and requests of peers at this coordinator. */
interface PlacementServices {
  /** Exchanges with peers which coordinator's providers cached which prompt prefixes. */
  readonly prefixes: PrefixHints;
  /** Places requests of local clients, here or at a peer. */
  readonly placements: ClusterPlacements;
  readonly clusterModels: ClusterModels;
  /** Places requests of peers at providers of this coordinator. */
  readonly server: PlacementServer;
  /** Announces new provider connections, so that a peer closes an older connection of the same provider. */
  readonly moved: MovedProviders;
}

function createPlacement(
  context: StartContext,
  deps: ClusterDeps,
  { self, broadcast }: Connection,
  membership: Membership,
  peers: Peers,
): PlacementServices {
  const { now, random } = context;
  const { requestQueue, metrics } = deps;
  const { providers: registry } = deps.providers;
  const rules = descriptionRules(context, deps);
  const client = new PlacementClient({
    findPeer: peers.find,
    rules,
    onOutcome: (outcome) => metrics.peerPlacement(outcome),
    digestReceiver: (peerId, model) => membership.digestReceiver(peerId, model),
    now,
  });
  const prefixes = new PrefixHints({ self, broadcast });
  return {
    prefixes,
    placements: new ClusterPlacements({ self, requestQueue, registry, membership, client, prefixes, now, random }),
    clusterModels: new ClusterModels({ local: registry.models, membership }),
    server: new PlacementServer({ registry, requestQueue, onDigestSent: (model) => membership.digestSent(model) }),
    moved: new MovedProviders({ registry, peers: peers.live, peer: peers.find, rules }),
  };
}

/** Publishes to peers what local providers cached, and changes of their models. Returns a function that stops this. */
function publishChanges(providers: ProviderRegistry, prefixes: PrefixHints, membership: Membership): () => void {
  const stopPrefixes = providers.placement.onPrefixesCached((chain) => prefixes.answered(chain));
  const stopModels = providers.models.onCapacity(() => membership.modelsChanged());
  return () => {
    stopModels();
    stopPrefixes();
  };
}

/** Leaves the cluster, and waits until its last message has reached the peers. */
async function sayGoodbye(membership: Membership): Promise<void> {
  const hasPeers = membership.peers.length > 0;
  membership.close();
  if (hasPeers) await new Promise((resolve) => setTimeout(resolve, GOODBYE_MS));
}

function openTransport(settings: ClusterSettings, log: Log): NatsTransport {
  return new NatsTransport({
    servers: settings.servers,
    name: `coordinator ${settings.id}`,
    ...(settings.nkeySeed === null ? {} : { nkeySeed: settings.nkeySeed }),
    ...tlsOf(settings),
    log: ({ event, ...facts }) => log.info({ nats: event, ...facts }, 'cluster transport'),
  });
}

interface MembershipEventDeps {
  readonly links: PeerLinks;
  readonly transport: NatsTransport;
  /** Tells `NetworkPermits` which coordinators are live. */
  readonly updatePermits: () => void;
  /** A function, because the placement services are created after the membership. */
  readonly placement: () => PlacementServices;
}

function membershipEvents({ log, now }: StartContext, { metrics, providers }: ClusterDeps, cluster: MembershipEventDeps): MembershipEvents {
  const { links, transport, updatePermits, placement } = cluster;
  const warnOfRefusal = refusalAlarm(log, now);
  return {
    joined: (id) => {
      links.link(id);
      updatePermits();
      void placement().moved.peerJoined(id);
      log.info({ peer: id }, 'coordinator joined');
    },
    left: (id) => {
      links.remove(id);
      placement().moved.peerLeft(id);
      // While disconnected from NATS, this coordinator keeps to its share of each limit, because the peers may still serve requests.
      if (transport.isConnected) updatePermits();
      log.info({ peer: id }, 'coordinator left');
    },
    changed: (models) => {
      for (const { id, digest } of models) if (digest !== null) providers.recentlySeenModels.record(id);
      placement().placements.digestsChanged(models);
      placement().clusterModels.digestsChanged(models);
    },
    clockDiffers: clockAlarm(log, now),
    refused: (id, refusal) => {
      metrics.heartbeatRefused(refusal.kind);
      warnOfRefusal(id, refusal);
    },
  };
}

/** Rules by which this coordinator verifies the providers of peers, equal to those for local providers. */
function descriptionRules({ config, now }: StartContext, { providers: { devices } }: ClusterDeps): DescriptionRules {
  return {
    allowSimulatedEnclave: config.allowSimulatedEnclave,
    anchor: devices.anchor,
    limits: {
      maxChallengeAgeMs: maxChallengeAge({ ...SESSION_TIMINGS, challengeIntervalMs: config.challengeIntervalMs }),
      maxManagementAgeMs: MAX_MANAGEMENT_AGE_MS,
    },
    now,
  };
}

interface RequestServers {
  readonly membership: Membership;
  readonly permits: NetworkPermits;
  readonly server: PlacementServer;
  readonly moved: MovedProviders;
}

function serveRequests(links: PeerLinks, providers: ProviderRegistry, { membership, permits, server, moved }: RequestServers): void {
  links.onRequest('joined', (payload, { peer: id }) => moved.receiveAnnouncement(peerOver(links.link(id)), payload));
  links.onRequest(MODELS, () => membership.allModels());
  links.onRequest('permits', (payload, { peer: id }) => permits.answer(id, payload));
  links.onRequest('describe', (payload) => server.describe(payload));
  links.onRequest('finding', (payload) => server.receiveFinding(payload));
  links.onRequest('owner_command', (payload) => serveOwnerCommand(providers, payload));
  links.onRequest('claimants', (payload) => encodeMessage(providers.placement.claimants(Buffer.from(payload).toString())));
}

/** Serves streams of peers, by kind. Returns the group of open streams, among them jobs of the peers' clients. */
function serveStreams(
  links: PeerLinks,
  log: Log,
  handlers: Readonly<Record<string, (stream: PeerStream, header: Uint8Array) => Promise<void>>>,
): WaitGroup {
  const open = new WaitGroup();
  for (const [kind, serve] of Object.entries(handlers)) {
    links.onStream(kind, (stream, header) => {
      open.add();
      const incoming = PeerStream.incoming(stream, () => open.done());
      serve(incoming, header).catch((error: unknown) => {
        log.error({ stream: kind, error: errorFacts(error) }, 'stream of a peer failed');
        incoming.abort('failed');
      });
      return incoming;
    });
  }
  return open;
}

interface ReconnectListeners {
  readonly onConnected: () => void;
  /** Called {@link HEARTBEATS_ARRIVAL_MS} after a reconnect. */
  readonly onHeartbeats: () => void;
}

/** Reports each reconnect to NATS. Returns a function that stops this. */
function watchReconnects(transport: NatsTransport, { onConnected, onHeartbeats }: ReconnectListeners): () => void {
  let timer: NodeJS.Timeout | undefined;
  const stop = transport.onState((isConnected) => {
    clearTimeout(timer);
    if (!isConnected) return;
    onConnected();
    timer = setTimeout(onHeartbeats, HEARTBEATS_ARRIVAL_MS);
  });
  return () => {
    stop();
    clearTimeout(timer);
  };
}

/** Checks that the file can be read, because the NATS client reads it only when connecting. Throws StartupError. */
function tlsOf({ certificateAuthorityFile: caFile }: ClusterSettings): Pick<NatsTransportOptions, 'tls'> {
  if (caFile === null) return {};
  try {
    accessSync(caFile, constants.R_OK);
  } catch (error) {
    throw new StartupError(`NATS_CA_FILE cannot be read: ${errorReason(error)}.`, { cause: error });
  }
  return { tls: { caFile } };
}

/** Adapts a link to the interface that placements, views and images use. */
function peerOver(link: PeerLink): Peer {
  return {
    id: link.peer,
    request: (kind, payload, timeoutMs) => link.request(kind, payload, { timeoutMs }),
    openStream: (kind, header) => PeerStream.open((handlers) => link.openStream(kind, header, handlers)),
  };
}

/** Returns a function that logs a peer's clock difference, at most once a minute per peer. */
function clockAlarm(log: Log, now: () => number): (peerId: string, ms: number) => void {
  const isDue = oncePerMinute(now);
  return (peerId, ms) => {
    if (isDue(peerId)) log.warn({ peer: peerId, difference_ms: Math.round(ms) }, 'the clock of another coordinator differs');
  };
}

/** Returns a function that logs a refused peer, at most once a minute per peer. */
function refusalAlarm(log: Log, now: () => number): (peerId: string, refusal: RefusedHeartbeat) => void {
  const isDue = oncePerMinute(now);
  return (peerId, { kind: reason, ...facts }) => {
    if (isDue(peerId)) log.warn({ peer: peerId, reason, ...facts, own_version: CLUSTER_VERSION }, 'another coordinator is refused');
  };
}

/** Returns a function that returns true at most once a minute per peer. */
function oncePerMinute(now: () => number): (peerId: string) => boolean {
  const loggedAt = new Map<string, number>();
  return (peerId) => {
    if (now() - (loggedAt.get(peerId) ?? Number.NEGATIVE_INFINITY) < 60_000) return false;
    if (loggedAt.size > 1000) loggedAt.clear();
    loggedAt.set(peerId, now());
    return true;
  };
}
