/**
 * `openProviders` creates the registry of connected providers and device management, and connects both to log, metrics and repositories.
 *
 * `acceptProviders` opens the WebSocket endpoint.
 */
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { apiError } from '@inference/formats';
import { ProviderLinks } from '../accounts/provider-links.js';
import { isUnclaimed } from '../database/ledger/unclaimed-accounts.js';
import { PeriodicRefresh } from '../database/periodic-refresh.js';
import type { LastFacts, LastSeenRepository } from '../database/providers/last-seen-repository.js';
import { OwnedProviderRepository } from '../database/providers/owned-provider-repository.js';
import type { ReputationRepository } from '../database/providers/reputation-repository.js';
import type { Database } from '../database/tables.js';
import { newRequestId } from '../inference/request/job-id.js';
import type { Log } from '../log.js';
import { RecentlySeenModels } from '../providers/placement/recently-seen-models.js';
import { type ProviderEvent, ProviderRegistry } from '../providers/provider-registry.js';
import type { ProviderSnapshot } from '../providers/provider-snapshot.js';
import { withinDeadline } from '../providers/session/answer-deadline.js';
import { evaluateOffers } from '../providers/session/model-offers.js';
import { openProviderServer, type UpgradeRefusal } from '../providers/session/provider-server.js';
import { CLUSTER_HEARTBEAT_MS, SESSION_TIMINGS, type SessionEnd } from '../providers/session/session-options.js';
import { JobOutcomes } from '../releases/job-outcomes.js';
import { endWithError } from '../routes/plugins/connections/socket-error.js';
import { EndedSessions } from '../telemetry/gauges.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Repositories } from './database.js';
import { type ManagedDevices, openDevices } from './devices.js';
import type { StartContext } from './start-context.js';

export interface ProviderServices {
  readonly providers: ProviderRegistry;
  readonly devices: ManagedDevices;
  /** Links providers to the accounts of their owners. */
  readonly providerLinks: ProviderLinks;
  /** Models of the catalogue, and models served within the last day. */
  readonly recentlySeenModels: RecentlySeenModels;
  readonly endedSessions: EndedSessions;
  /** Attempts and failures of each provider since the last rollout check. */
  readonly outcomes: JobOutcomes;
  /** Called after a provider has registered. Replaced by the cluster. */
  onJoined: (provider: ProviderSnapshot) => void;
}

interface ProviderDeps {
  readonly database: Database;
  readonly repositories: Repositories;
  readonly metrics: Metrics;
  /** URL of the HTTP server. Empty until the server listens. */
  readonly address: () => string;
}

export function openProviders(context: StartContext, { database, repositories, metrics, address }: ProviderDeps): ProviderServices {
  const { config, options, log, now, random, onWriteError, disposal, changeHints } = context;
  const { catalogue, quarantines, lastSeen, reputations, modelsOfRecentJobs } = repositories;
  const devices = openDevices(context, { database, metrics, address });
  const endedSessions = new EndedSessions();
  const outcomes = new JobOutcomes();
  const providerLinks = new ProviderLinks({
    database,
    now,
    onUnlink: (providerId) => {
      providers.unlinked(providerId);
      changeHints.publish('unlinked', providerId);
    },
  });
  const providers: ProviderRegistry = new ProviderRegistry({
    rules: {
      timings: { ...SESSION_TIMINGS, challengeIntervalMs: config.challengeIntervalMs, ...options.providerTimings },
      allowSimulatedEnclave: config.allowSimulatedEnclave,
      minTrustLevel: config.minTrustLevel,
      ...(config.cluster === null ? {} : { heartbeatMs: CLUSTER_HEARTBEAT_MS }),
      anchor: devices.anchor,
      now,
      enrolments: reportingFailures(devices.enrol, onWriteError),
      links: reportingFailures((providerId, token) => providerLinks.link(providerId, token), onWriteError),
      evaluateOffers: (offers) => evaluateOffers(offers, { catalogue: catalogue.entries, onlyCatalogued: config.catalogueOnly }),
    },
    random,
    reputations,
    quarantineOf: (providerId) => quarantines.of(providerId),
    onOutcome: (providerId, hasFailed) => outcomes.record(providerId, hasFailed),
    onEvent: (event) => {
      logProviderEvent(log, event);
      metrics.providerEvent(event);
      if (event.type === 'left') endedSessions.add(event.counters);
      if (event.type === 'joined') services.onJoined(event.provider);
      devices.onProviderEvent(event);
      recordLastSeen(lastSeen, event, now());
      void publishReputation(context, reputations, event);
    },
  });
  devices.notifyProviders(providers);
  followUnlinks(context, database, providers);
  catalogue.onChange = () => providers.reevaluateOffers();
  reputations.onChange = (providerId, reputation) => providers.reputations.adopt(providerId, reputation);
  quarantines.onChange = (providerIds) => providers.quarantinesChanged(providerIds);
  const recentlySeenModels = new RecentlySeenModels({ registry: providers.models, catalogue, earlier: modelsOfRecentJobs, now });
  disposal.defer(() => recentlySeenModels.close());
  disposal.defer(() => devices.management.close());
  const services: ProviderServices = { providers, devices, providerLinks, recentlySeenModels, endedSessions, outcomes, onJoined: () => {} };
  return services;
}

export function acceptProviders({ config, disposal, now }: StartContext, providers: ProviderRegistry, server: Server): void {
  const { trustedProxies } = config;
  const refuse = (socket: Duplex, refusal: UpgradeRefusal): void => refuseUpgrade(socket, refusal, newRequestId(now()));
  const closeProviderServer = openProviderServer(server, { registry: providers, trustedProxies, refuse });
  disposal.defer(closeProviderServer);
  disposal.defer(() => providers.close());
}

function refuseUpgrade(socket: Duplex, refusal: UpgradeRefusal, requestId: string): void {
  if (refusal.kind === 'too_many') {
    endWithError(socket, { error: apiError('overloaded', { message: 'Too many connections. Try again later.' }), requestId });
    return;
  }
  const error = apiError('invalid_request', { message: `The WebSocket handshake is not valid: ${refusal.message}.` });
  // RFC 6455 section 4.4.
  endWithError(socket, { error, requestId, headers: { 'sec-websocket-version': '13' } });
}

/** Wraps a service that provider sessions call. Reports its failures and timeouts, for which a session only asks to try later. */
function reportingFailures<Args extends readonly unknown[], Answer extends object>(
  service: (...args: Args) => Promise<Answer>,
  onFailure: (error: unknown) => void,
): (...args: Args) => Promise<Answer> {
  return async (...args) => {
    try {
      return await withinDeadline(service(...args));
    } catch (error) {
      onFailure(error);
      throw error;
    }
  };
}

function logProviderEvent(log: Log, event: ProviderEvent): void {
  switch (event.type) {
    case 'joined': {
      const { identity, agentVersion, slots } = event.provider.registration;
      const models = event.provider.models.map((model) => model.id);
      log.info({ provider: identity.providerId, simulated: identity.simulated, agent: agentVersion, slots, models }, 'provider joined');
      return;
    }
    case 'left': {
      const provider = event.provider?.registration.identity.providerId ?? null;
      log.info({ provider, session: event.sessionId, ...event.end, message: undefined }, 'provider left');
      return;
    }
    case 'trust_reported': {
      const { level, parts } = event.provider.trust;
      const gaps = parts.filter(({ state }) => state !== 'ok').map(({ name, state, reason }) => `${name} ${state}: ${reason}`);
      const provider = event.provider.registration.identity.providerId;
      log.info({ provider, trust_level: level, status: event.status, gaps }, 'provider status sent');
      return;
    }
    case 'quarantined':
      log.error({ provider: event.providerId, reason: event.reason, until: event.until }, 'provider quarantined');
      return;
    case 'cooling_down':
      log.warn({ provider: event.providerId, reason: event.reason, until: event.until }, 'provider cooling down');
      return;
    case 'reinstated':
      log.warn({ provider: event.providerId }, 'provider reinstated');
  }
}

/** Tells other coordinators of a provider's new or ended restriction, once it is in the database. */
async function publishReputation({ changeHints }: StartContext, reputations: ReputationRepository, event: ProviderEvent): Promise<void> {
  if (event.type !== 'quarantined' && event.type !== 'cooling_down' && event.type !== 'reinstated') return;
  if (!changeHints.isShared) return;
  // Two flushes, because a write in progress may have started before the change.
  await reputations.flush();
  await reputations.flush();
  changeHints.publish('reputation', event.providerId);
}

/** Records a provider's facts when its connection begins or ends. */
function recordLastSeen(lastSeen: LastSeenRepository, event: ProviderEvent, at: number): void {
  if (event.type !== 'joined' && event.type !== 'left') return;
  const { provider } = event;
  if (provider === null) return;
  const facts = lastSeenFacts(provider, event.type === 'left' ? event.end : null);
  lastSeen.note(provider.registration.identity.providerId, { at, facts });
}

/** `end` is null when the connection begins. */
function lastSeenFacts(provider: ProviderSnapshot, end: SessionEnd | null): LastFacts {
  const { identity, agentName, agentVersion } = provider.registration;
  const { requestsServed, tokensGenerated, decodeTps } = provider.statistics;
  return {
    serial_number: identity.attestation.serial_number,
    chip_name: identity.attestation.chip_name,
    agent: { name: agentName, version: agentVersion },
    trust_level: provider.trust.level ?? 'none',
    models: provider.models.map(({ id }) => id),
    requests_served: requestsServed,
    tokens_generated: tokensGenerated,
    decode_tps: decodeTps,
    left: end === null ? null : end.by === 'provider' ? (provider.status === 'draining' ? 'stopped' : 'closed') : end.code,
  };
}

const CHECK_UNLINKS_MS = 15_000;

/** In a cluster, tells connected providers that another coordinator unlinked them from their account, as the database says. */
function followUnlinks(
  { config, options, changeHints, onWriteError, disposal }: StartContext,
  database: Database,
  providers: ProviderRegistry,
): void {
  if (config.cluster === null) return;
  const machines = new OwnedProviderRepository(database);
  // Periodically checks all linked providers, and at once those that a change hint names.
  const check = async (isSuspected: (providerId: string) => boolean): Promise<void> => {
    const owned = [...providers.owned()].filter(({ providerId }) => isSuspected(providerId));
    if (owned.length === 0) return;
    const owners = await machines.ownersOf(owned.map(({ providerId }) => providerId));
    // The provider may have been linked again during the read.
    const ownersNow = new Map([...providers.owned()].map(({ providerId, accountId }) => [providerId, accountId]));
    for (const { providerId, accountId } of owned) {
      const owner = owners.get(providerId);
      if (owner !== undefined && isUnclaimed(owner) && ownersNow.get(providerId) === accountId) providers.unlinked(providerId);
    }
  };
  changeHints.on('unlinked', (providerIds) => void check((id) => providerIds.has(id)).catch(onWriteError));
  const checking = new PeriodicRefresh({
    read: () => check(() => true),
    everyMs: options.refreshMs ?? CHECK_UNLINKS_MS,
    onError: onWriteError,
  });
  void checking.begin();
  disposal.defer(() => checking.close());
}
