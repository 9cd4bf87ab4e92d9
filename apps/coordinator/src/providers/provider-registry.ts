/**
 * `ProviderRegistry` holds the providers connected to this coordinator. It accepts connections and closes sessions. Of each enclave key,
 * only the newest session stays open.
 *
 * Other layers read snapshots, query `models`, or place jobs through `placement`.
 */
import type { ProviderId, RejectionCode } from '@inference/protocol';
import { type DrainDemand, ModelIndex, ThroughputStats } from '@inference/scheduler';
import type { WebSocket } from 'ws';
import { ModelDirectory } from './placement/model-directory.js';
import { PlacementService } from './placement/placement-service.js';
import { ProviderMeasurements } from './placement/provider-measurements.js';
import type { ProviderStatus } from './placement/provider-status.js';
import type { OperatorQuarantine } from './placement/quarantine.js';
import type { ProviderSnapshot } from './provider-snapshot.js';
import type { Fault } from './reputation/reputation.js';
import { type ReputationEvent, ReputationRegistry } from './reputation/reputation-registry.js';
import type { ReputationPersistence } from './reputation/reputation-store.js';
import { ConnectedProviders } from './session/connected-providers.js';
import { GracefulShutdown, rejectShuttingDown } from './session/graceful-shutdown.js';
import type { OwnerCommandOutcome, OwnerCommandRequest } from './session/owner-commands.js';
import { type OnlineSession, ProviderSession } from './session/provider-session.js';
import type { Transport } from './session/provider-socket.js';
import type { TokenHash } from './session/registration/session-token.js';
import type { SessionCounters, SessionEnd, SessionOptions } from './session/session-options.js';
import type { DeviceEvidence } from './verification/evidence.js';

export type ProviderEvent =
  | { readonly type: 'joined'; readonly provider: ProviderSnapshot }
  | {
      readonly type: 'left';
      readonly sessionId: string;
      /** Null: the connection closed before the provider registered. */
      readonly provider: ProviderSnapshot | null;
      readonly counters: Readonly<SessionCounters>;
      readonly end: SessionEnd;
    }
  /** The provider was sent a new trust level, status or trust part. */
  | { readonly type: 'trust_reported'; readonly provider: ProviderSnapshot; readonly status: ProviderStatus }
  | ReputationEvent;

interface ProviderRegistryOptions {
  readonly rules: SessionOptions;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly onEvent: (event: ProviderEvent) => void;
  /** Absent: reputations are lost when the process ends. */
  readonly reputations?: ReputationPersistence;
  readonly quarantineOf?: (providerId: ProviderId) => OperatorQuarantine | null;
  /** Called for each verified answer and each recorded fault. A lost connection is one fault, however many jobs it ran. */
  readonly onOutcome?: (providerId: ProviderId, hasFailed: boolean) => void;
}

export class ProviderRegistry {
  readonly #rules: SessionOptions;
  readonly #onEvent: (event: ProviderEvent) => void;
  /** Open connections, registered or not. */
  readonly #sockets = new Set<ProviderSession>();
  readonly #connected: ConnectedProviders;
  readonly #index = new ModelIndex<OnlineSession>(new ThroughputStats());
  readonly #livenessTimer: NodeJS.Timeout;
  /** Null until the coordinator begins to shut down. */
  #shutdown: GracefulShutdown | null = null;
  /** Reputation of each enclave key. */
  readonly reputations: ReputationRegistry;
  readonly models: ModelDirectory;
  readonly placement: PlacementService;

  constructor({ rules, random, onEvent, reputations, quarantineOf, onOutcome }: ProviderRegistryOptions) {
    const { now } = rules;
    this.#rules = rules;
    this.#onEvent = onEvent;
    this.reputations = new ReputationRegistry({
      now,
      random,
      onEvent,
      ...(reputations === undefined ? {} : { persistence: reputations }),
      ...(quarantineOf === undefined ? {} : { quarantineOf }),
      ...(onOutcome === undefined ? {} : { onOutcome }),
      // The change may give queued requests a provider, or take one away.
      onChange: (providerId) => this.#changeProvider(providerId),
    });
    this.#connected = new ConnectedProviders({ reputations: this.reputations, minTrustLevel: rules.minTrustLevel ?? 'self_signed', now });
    const shared = { index: this.#index, connected: this.#connected, now };
    const measurements = new ProviderMeasurements(shared);
    this.models = new ModelDirectory({ ...shared, measurements });
    this.placement = new PlacementService({ ...shared, measurements, reputations: this.reputations, random });
    // Deferred with `setImmediate`: if this process was blocked, it first reads pending input, so that no provider seems silent.
    this.#livenessTimer = setInterval(() => setImmediate(() => this.#checkLiveness()), rules.timings.pingMs);
  }

  /** Number of open connections, registered or not. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Starts the session of a new connection. `network`: address of the connection, as returned by `networkOf`. Null: unknown. */
  accept(socket: WebSocket, transport: Transport, onRegistered: () => void = () => {}, network: string | null = null): ProviderSession {
    const session = new ProviderSession(socket, transport, this.#rules, {
      registered: (online) => {
        onRegistered();
        this.#join(online);
      },
      changed: (online) => this.#change(online),
      closed: (closed, end) => this.#leave(closed, end),
    });
    session.network = network;
    this.#sockets.add(session);
    if (this.#shutdown !== null) rejectShuttingDown(session);
    return session;
  }

  isConnected(providerId: ProviderId): boolean {
    return this.#connected.get(providerId) !== null;
  }

  *snapshots(): Iterable<ProviderSnapshot> {
    for (const session of this.#connected.all()) yield this.#connected.snapshot(session);
  }

  /** Snapshot of one provider; null if it is not connected. */
  snapshot(providerId: ProviderId): ProviderSnapshot | null {
    const session = this.#connected.get(providerId);
    return session === null ? null : this.#connected.snapshot(session);
  }

  /** Snapshot of the provider whose session token has this hash. Null: unknown token, or the session has ended. */
  snapshotByToken(providerId: ProviderId, hash: TokenHash): ProviderSnapshot | null {
    const session = this.#connected.get(providerId);
    return session?.ownsToken(hash) === true ? this.#connected.snapshot(session) : null;
  }

  /** Verifies the stored device evidence of an enclave key and reports the result. No effect if the provider is not connected. */
  setDeviceEvidence(providerId: ProviderId, evidence: DeviceEvidence | null): void {
    this.#connected.get(providerId)?.evidence.setDevice(evidence);
  }

  /** Connected providers that are linked to an account. */
  *owned(): Iterable<{ readonly providerId: ProviderId; readonly accountId: string }> {
    for (const { registration, ownerAccountId } of this.#connected.all()) {
      if (ownerAccountId !== null) yield { providerId: registration.identity.providerId, accountId: ownerAccountId };
    }
  }

  /** Tells a connected provider that its owner removed it from the account. */
  unlinked(providerId: ProviderId): void {
    this.#connected.get(providerId)?.unlinked();
  }

  /** Sends an owner's command to the provider and waits for its answer. Null: not connected here. Never rejects. */
  async executeOwnerCommand(
    providerId: ProviderId,
    { accountId, commandId, action }: OwnerCommandRequest,
  ): Promise<OwnerCommandOutcome | null> {
    const session = this.#connected.get(providerId);
    if (session === null || session.ownerCommands === null) return null;
    if (session.ownerAccountId !== accountId) return { outcome: session.ownerCommands.isSupported ? 'not_linked' : 'unsupported' };
    return session.ownerCommands.execute(commandId, action);
  }

  /** Evaluates the offers of all providers again, after the catalogue changed. */
  reevaluateOffers(): void {
    for (const session of this.#connected.all()) session.reevaluateOffers();
  }

  /** Updates providers whose quarantine by an operator has changed. */
  quarantinesChanged(providerIds: Iterable<ProviderId>): void {
    for (const providerId of providerIds) this.#changeProvider(providerId);
  }

  /** Begins a graceful shutdown. `demands` returns the placements that running jobs may still need; called repeatedly. */
  drain(demands: () => Iterable<DrainDemand>): void {
    this.#shutdown = new GracefulShutdown(demands, {
      connected: this.#sockets,
      membersOf: (model) => this.#index.pool(model)?.members() ?? [],
      now: this.#rules.now,
    });
  }

  /** Asks all providers to reconnect elsewhere, at once. */
  closeSessions(): void {
    this.#shutdown?.stop();
    for (const session of [...this.#sockets]) rejectShuttingDown(session);
  }

  /** Closes the remaining connections and stops all timers. */
  close(): void {
    clearInterval(this.#livenessTimer);
    this.#shutdown?.stop();
    this.reputations.close();
    for (const session of [...this.#sockets]) session.terminate();
  }

  #join(session: OnlineSession): void {
    const older = this.#connected.add(session);
    if (older !== null && older !== session) {
      this.#index.remove(older);
      older.reject('replaced', 'the same enclave key has connected again');
    }
    this.#onEvent({ type: 'joined', provider: this.#connected.snapshot(session) });
    this.#change(session);
  }

  #changeProvider(providerId: ProviderId): void {
    const session = this.#connected.get(providerId);
    if (session !== null) this.#change(session);
  }

  #change(session: OnlineSession): void {
    if (!this.#connected.isCurrent(session)) return;
    const { providerId } = session.registration.identity;
    this.placement.updateIndex(session);
    this.placement.follow(session);
    this.models.seen(session.models);
    const status = this.#connected.status(session);
    const restriction = this.reputations.restrictionMessage(providerId);
    if (session.reportStatus(status, restriction, this.reputations.quarantineOf(providerId))) {
      this.#onEvent({ type: 'trust_reported', provider: this.#connected.snapshot(session), status });
    }
    this.models.notifyCapacity(session.models);
    this.#shutdown?.changed(session);
  }

  #leave(session: ProviderSession, end: SessionEnd): void {
    this.#sockets.delete(session);
    const online = session.online;
    if (online !== null) {
      const { providerId } = online.registration.identity;
      const fault = session.jobs.runningCount > 0 ? faultOf(end, session.isDraining) : null;
      if (fault !== null) this.reputations.recordFault(providerId, fault.fault, fault.detail);
      this.#index.remove(online);
      this.#connected.remove(online);
      this.models.notifyCapacity(session.models);
    }
    const { sessionId, counters } = session;
    this.#onEvent({ type: 'left', sessionId, provider: online === null ? null : this.#connected.snapshot(online), counters, end });
  }

  #checkLiveness(): void {
    for (const session of [...this.#sockets]) session.checkLiveness();
  }
}

/** Rejections that only a faulty or malicious agent causes. */
const BROKEN_PROTOCOL: ReadonlySet<RejectionCode> = new Set(['bad_message', 'out_of_turn', 'too_large', 'misbehaved']);

/** Fault of a provider whose session ended during jobs. Counted once, however many jobs ran. Null: no fault. `detail`: a code. */
function faultOf(end: SessionEnd, draining: boolean): { readonly fault: Fault; readonly detail: string } | null {
  if (end.by === 'provider') return draining ? null : { fault: 'lost', detail: 'connection_lost' };
  if (BROKEN_PROTOCOL.has(end.code)) return { fault: 'misbehaved', detail: end.code };
  return end.code === 'too_slow' ? { fault: 'lost', detail: end.code } : null;
}
