/** Joins the cluster: transport, links to live peers, membership, placements in both directions, and network-wide views. */
import { accessSync, constants } from 'node:fs';
import { registerClusterGauges } from '../cluster/cluster-gauges.js';
import { ClusterViews } from '../cluster/cluster-views.js';
import { fetchImage, serveImage } from '../cluster/images.js';
import { encodeMessage } from '../cluster/json-message.js';
import type { PeerLink } from '../cluster/link/peer-link.js';
import { PeerLinks } from '../cluster/link/peer-links.js';
import { CLUSTER_VERSION } from '../cluster/membership/heartbeat.js';
import { type Broadcast, Membership, type RefusedHeartbeat } from '../cluster/membership/membership.js';
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
import { publishedModels } from '../cluster/placement/published-models.js';
import { RoundTrips } from '../cluster/round-trips.js';
import type { ClusterSettings } from '../cluster/settings.js';
import { NatsTransport, type NatsTransportOptions } from '../cluster/transport/nats-transport.js';
import { errorReason, StartupError } from '../config/startup-error.js';
import { errorFacts, type Log } from '../log.js';
import { maxChallengeAge, SESSION_TIMINGS } from '../providers/session/session-options.js';
import { MAX_MANAGEMENT_AGE_MS } from '../providers/verification/trust-policy.js';
import { WaitGroup } from '../wait-group.js';
import type { ClusterDeps, ClusterServices } from './cluster.js';
import type { StartContext } from './start-context.js';

/** Maximum time for all models of a peer, in milliseconds. */
const MODELS_MS = 3000;
/** Maximum time for permits of a rate limit, in milliseconds. */
const PERMITS_MS = 500;
/** Time after a reconnect until the heartbeats of peers have arrived, in milliseconds. */
const HEARTBEATS_MS = 2500;
/** Maximum time for peers to learn of a departure, in milliseconds. */
const GOODBYE_MS = 250;

export async function joinCluster(context: StartContext, settings: ClusterSettings, deps: ClusterDeps): Promise<ClusterServices> {
  const { config, log, now, random, disposal, changeHints, isDraining } = context;
  const { requestQueue, metrics } = deps;
  const { providers, devices, expectedModels } = deps.providers;
  const self = settings.id;
  const transport = new NatsTransport({
    servers: settings.servers,
    name: `coordinator ${self}`,
    ...(settings.nkeySeed === null ? {} : { nkeySeed: settings.nkeySeed }),
    ...tlsOf(settings),
    log: ({ event, ...facts }) => log.info({ nats: event, ...facts }, 'cluster transport'),
  });
  const links = new PeerLinks({ self, transport, log: ({ event, ...facts }) => log.info({ link: event, ...facts }, 'cluster link') });
  const peerOf = (id: string): Peer | null => (membership.isLive(id) ? peerOver(links.link(id)) : null);
  const permits = new NetworkPermits({
    self,
    request: (id, payload) => links.link(id).request('permits', payload, { timeoutMs: PERMITS_MS }),
    isConnected: () => transport.isConnected,
  });
  const warnOfRefusal = refusalAlarm(log, now);
  const updatePermits = (): void => permits.coordinatorsChanged([self, ...membership.peers.map(({ id }) => id)]);
  const broadcast: Broadcast = {
    publish: (subject, bytes) => void transport.publish(subject, bytes),
    subscribe: (pattern, handler) => transport.subscribe(pattern, handler),
  };
  const membership: Membership = new Membership({
    self,
    broadcast,
    models: () => publishedModels(providers, requestQueue),
    providers: () => providers.connections,
    isDraining,
    requestModels: (id) => links.link(id).request('models', new Uint8Array(), { timeoutMs: MODELS_MS }),
    events: {
      joined: (id) => {
        links.link(id);
        updatePermits();
        void moved.peerJoined(id);
        log.info({ peer: id }, 'coordinator joined');
      },
      left: (id) => {
        links.remove(id);
        moved.peerLeft(id);
        // A disconnected coordinator applies its share of each limit: the others still serve.
        if (transport.isConnected) updatePermits();
        log.info({ peer: id }, 'coordinator left');
      },
      changed: (models) => {
        for (const { id, digest } of models) if (digest !== null) expectedModels.record(id);
        placements.digestsChanged(models);
        clusterModels.digestsChanged(models);
      },
      clockDiffers: clockAlarm(log, now),
      refused: (id, refusal) => {
        metrics.heartbeatRefused(refusal.kind);
        warnOfRefusal(id, refusal);
      },
    },
    now,
  });
  const rules = {
    allowSimulatedEnclave: config.allowSimulatedEnclave,
    anchor: devices.anchor,
    limits: {
      maxChallengeAgeMs: maxChallengeAge({ ...SESSION_TIMINGS, challengeIntervalMs: config.challengeIntervalMs }),
      maxManagementAgeMs: MAX_MANAGEMENT_AGE_MS,
    },
    now,
  };
  const client = new PlacementClient({
    peer: peerOf,
    rules,
    onOutcome: (outcome) => metrics.peerPlacement(outcome),
    onDigest: (peerId, model, digest) => membership.replied(peerId, model, digest),
    now,
  });
  const prefixes = new PrefixHints({ self, broadcast });
  const placements: ClusterPlacements = new ClusterPlacements({
    self,
    requestQueue,
    registry: providers,
    membership,
    client,
    prefixes,
    now,
    random,
  });
  const clusterModels: ClusterModels = new ClusterModels({ local: providers.models, membership });
  const livePeers = (): Peer[] => membership.peers.flatMap(({ id }) => peerOf(id) ?? []);
  const views = new ClusterViews({ peers: livePeers });
  const server = new PlacementServer({ registry: providers, requestQueue });
  const moved: MovedProviders = new MovedProviders({ registry: providers, peers: livePeers, peer: peerOf, rules });
  deps.providers.onJoined = (provider) => moved.announce(provider);
  links.onRequest('joined', (payload, { peer: id }) => moved.announced(peerOver(links.link(id)), payload));
  links.onRequest('models', () => membership.allModels());
  links.onRequest('permits', (payload, { peer: id }) => permits.answer(id, payload));
  links.onRequest('describe', (payload) => server.describe(payload));
  links.onRequest('finding', (payload) => server.receiveFinding(payload));
  links.onRequest('owner_command', (payload) => serveOwnerCommand(providers, payload));
  links.onRequest('claimants', (payload) => encodeMessage(providers.placement.claimants(Buffer.from(payload).toString())));
  /** Streams that peers have opened here, jobs of their clients included. */
  const served = new WaitGroup();
  const serveStreams = (kind: string, serve: (stream: PeerStream, header: Uint8Array) => Promise<void>): void =>
    links.onStream(kind, (stream, header) => {
      served.add();
      const incoming = PeerStream.incoming(stream, () => served.done());
      serve(incoming, header).catch((error: unknown) => {
        log.error({ stream: kind, error: errorFacts(error) }, 'stream of a peer failed');
        incoming.abort('failed');
      });
      return incoming;
    });
  serveStreams('placement', (stream, header) => server.serve(stream, header));
  serveStreams('view', (stream, header) => views.serve(stream, header));
  serveStreams('image', (stream, header) => serveImage(deps.images, stream, header));
  deps.images.fetchFromPeers = (name) => fetchImage(livePeers(), name);
  const nudges = new Nudges({ self, broadcast, hints: changeHints });
  const stopPublishing = providers.placement.onPrefixesCached((chain) => prefixes.answered(chain));
  const stopListening = providers.models.onCapacity(() => membership.modelsChanged());
  const roundTrips = new RoundTrips(links);
  registerClusterGauges(metrics, { transport, membership, links, roundTrips, now });
  let reconnectTimer: NodeJS.Timeout | undefined;
  const stopWatching = transport.onState((isConnected) => {
    clearTimeout(reconnectTimer);
    if (!isConnected) return;
    membership.announce();
    reconnectTimer = setTimeout(updatePermits, HEARTBEATS_MS);
  });
  disposal.defer(async () => {
    roundTrips.close();
    stopListening();
    stopPublishing();
    prefixes.close();
    stopWatching();
    clearTimeout(reconnectTimer);
    nudges.close();
    const hasPeers = membership.peers.length > 0;
    membership.close();
    if (hasPeers) await new Promise((resolve) => setTimeout(resolve, GOODBYE_MS));
    links.close();
    await transport.close();
  });
  log.info({ coordinator: self, servers: settings.servers.length }, 'cluster joined');
  return {
    placements,
    models: clusterModels,
    views,
    limits: permits,
    executeOwnerCommand: (providerId, request) => executeInCluster(providers, livePeers(), providerId, request),
    servingAtPeers: (model) => clusterModels.servingAtPeers(model),
    peerCount: () => membership.peers.filter(({ draining }) => !draining).length,
    announceDrain: () => membership.modelsChanged(),
    whenPeersServed: () => served.wait(),
  };
}

/** The client reads the file at each connection attempt; an operator should learn of an unreadable file at the start. */
function tlsOf({ certificateAuthorityFile: caFile }: ClusterSettings): Pick<NatsTransportOptions, 'tls'> {
  if (caFile === null) return {};
  try {
    accessSync(caFile, constants.R_OK);
  } catch (error) {
    throw new StartupError(`NATS_CA_FILE cannot be read: ${errorReason(error)}.`, { cause: error });
  }
  return { tls: { caFile } };
}

function peerOver(link: PeerLink): Peer {
  return {
    id: link.peer,
    request: (kind, payload, timeoutMs) => link.request(kind, payload, { timeoutMs }),
    openStream: (kind, header) => PeerStream.open((handlers) => link.openStream(kind, header, handlers)),
  };
}

/** Logs a clock difference of a peer at most once a minute. */
function clockAlarm(log: Log, now: () => number): (peerId: string, ms: number) => void {
  const isDue = oncePerMinute(now);
  return (peerId, ms) => {
    if (isDue(peerId)) log.warn({ peer: peerId, difference_ms: Math.round(ms) }, 'the clock of another coordinator differs');
  };
}

/** Logs a peer whose heartbeats cannot be read at most once a minute. */
function refusalAlarm(log: Log, now: () => number): (peerId: string, refusal: RefusedHeartbeat) => void {
  const isDue = oncePerMinute(now);
  return (peerId, { kind: reason, ...facts }) => {
    if (isDue(peerId)) log.warn({ peer: peerId, reason, ...facts, own_version: CLUSTER_VERSION }, 'another coordinator is refused');
  };
}

/** Whether a peer's last time was a minute ago or more. */
function oncePerMinute(now: () => number): (peerId: string) => boolean {
  const loggedAt = new Map<string, number>();
  return (peerId) => {
    if (now() - (loggedAt.get(peerId) ?? Number.NEGATIVE_INFINITY) < 60_000) return false;
    if (loggedAt.size > 1000) loggedAt.clear();
    loggedAt.set(peerId, now());
    return true;
  };
}
