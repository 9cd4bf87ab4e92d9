/**
 * The registry of connected providers: who is here, what they serve, and who takes jobs. One session per enclave key, the
 * newest; every entry belongs to the session that made it, so that the late end of an old one never removes the new one.
 */
import type { ModelOffer, ProviderId } from '@inference/protocol';
import type { WebSocket } from 'ws';
import { ModelIndex } from './model-index.js';
import { type Candidate, chooseProvider, type Placement, type PlacementRequest, type Unroutable } from './placement.js';
import { type OnlineSession, ProviderSession, type SessionEnd, type SessionRules } from './provider-session.js';
import type { Transport } from './provider-socket.js';
import { Slot } from './slot.js';

/** What the registry reports; the log is one listener. */
export type FleetEvent =
  | { readonly type: 'joined'; readonly session: OnlineSession }
  | { readonly type: 'left'; readonly session: ProviderSession; readonly end: SessionEnd }
  | { readonly type: 'quarantined'; readonly providerId: ProviderId; readonly reason: string }
  | { readonly type: 'reinstated'; readonly providerId: ProviderId };

export interface Quarantine {
  readonly reason: string;
  /** Milliseconds. */
  readonly since: number;
}

export interface ServedModel {
  readonly offer: ModelOffer;
  readonly sessions: readonly OnlineSession[];
  /** When this process first saw the model, in milliseconds. */
  readonly firstSeenAt: number;
}

export class Fleet {
  readonly #rules: SessionRules;
  readonly #random: () => number;
  readonly #onEvent: (event: FleetEvent) => void;
  readonly #connected = new Set<ProviderSession>();
  readonly #providers = new Map<ProviderId, OnlineSession>();
  readonly #models = new ModelIndex();
  readonly #firstSeen = new Map<string, number>();
  readonly #quarantined = new Map<ProviderId, Quarantine>();
  readonly #capacityListeners = new Set<(models: readonly ModelOffer[]) => void>();
  readonly #life: NodeJS.Timeout;
  #closing = false;

  constructor(options: { rules: SessionRules; random: () => number; onEvent: (event: FleetEvent) => void }) {
    this.#rules = options.rules;
    this.#random = options.random;
    this.#onEvent = options.onEvent;
    this.#life = setInterval(() => this.#checkLife(), options.rules.timings.pingMs);
  }

  /** Sockets open, registered or not. */
  get connections(): number {
    return this.#connected.size;
  }

  /** Takes in a provider's fresh connection. */
  accept(socket: WebSocket, transport: Transport): void {
    const session = new ProviderSession(socket, transport, this.#rules, {
      registered: (online) => this.#join(online),
      changed: (online) => this.#change(online),
      closed: (closed, end) => this.#leave(closed, end),
    });
    this.#connected.add(session);
    if (this.#closing) session.reject('shutting_down', 'the coordinator is shutting down');
  }

  /** Whether at least one provider serves the model now, free or not. */
  serves(model: string): boolean {
    for (const session of this.#models.offering(model)) if (isServing(this.#unroutable(session))) return true;
    return false;
  }

  /** Chooses among the providers of a model. With `placed`, take a slot of the first before anything else happens. */
  choose(model: string, request: PlacementRequest): Placement<Candidate & { readonly session: OnlineSession }> {
    const candidates = [];
    for (const session of this.#models.offering(model)) candidates.push(this.#candidate(session));
    return chooseProvider(candidates, request, this.#random);
  }

  /** Reserves a place on a session for one job. */
  takeSlot(session: OnlineSession): Slot {
    return new Slot(session);
  }

  /** Models that at least one provider serves, by id. */
  servedModels(): readonly ServedModel[] {
    const served: ServedModel[] = [];
    for (const [id, offering] of this.#models.models()) {
      const sessions = [...offering].filter((session) => isServing(this.#unroutable(session)));
      const offer = sessions[0]?.models.find((model) => model.id === id);
      if (offer !== undefined) served.push({ offer, sessions, firstSeenAt: this.#firstSeen.get(id) ?? this.#rules.now() });
    }
    return served.sort((a, b) => (a.offer.id < b.offer.id ? -1 : 1));
  }

  sessions(): Iterable<OnlineSession> {
    return this.#providers.values();
  }

  /** `online`, or the reason why the provider takes no jobs. */
  status(session: OnlineSession): 'online' | Unroutable {
    const reason = this.#unroutable(session);
    return reason === null || reason === 'held_off' ? 'online' : reason;
  }

  quarantines(): ReadonlyMap<ProviderId, Quarantine> {
    return this.#quarantined;
  }

  /** Takes an enclave key out of routing for the life of this process. It stays connected and is told nothing. */
  quarantine(providerId: ProviderId, reason: string): void {
    if (this.#quarantined.has(providerId)) return;
    this.#quarantined.set(providerId, { reason, since: this.#rules.now() });
    this.#onEvent({ type: 'quarantined', providerId, reason });
    // Those who wait for its models may have nobody left to wait for.
    const session = this.#providers.get(providerId);
    if (session !== undefined) this.#tellCapacity(session.models);
  }

  /** Lets a quarantined key take jobs again. False when it was not quarantined. */
  reinstate(providerId: ProviderId): boolean {
    if (!this.#quarantined.delete(providerId)) return false;
    this.#onEvent({ type: 'reinstated', providerId });
    const session = this.#providers.get(providerId);
    if (session !== undefined) this.#tellCapacity(session.models);
    return true;
  }

  /** Calls back with the models whose supply may have changed. Returns the function that ends this. */
  onCapacity(listener: (models: readonly ModelOffer[]) => void): () => void {
    this.#capacityListeners.add(listener);
    return () => this.#capacityListeners.delete(listener);
  }

  /** Tells providers that the coordinator goes away: those without jobs, or all. New ones are turned away from now on. */
  dismiss(which: 'idle' | 'all'): void {
    this.#closing = true;
    for (const session of [...this.#connected]) {
      if (which === 'all' || session.jobs.used === 0) session.reject('shutting_down', 'the coordinator is shutting down');
    }
  }

  /** Ends what is left. */
  close(): void {
    clearInterval(this.#life);
    for (const session of [...this.#connected]) session.terminate();
  }

  #join(session: OnlineSession): void {
    const { providerId } = session.registration.identity;
    const older = this.#providers.get(providerId);
    this.#providers.set(providerId, session);
    if (older !== undefined && older !== session) {
      this.#models.remove(older);
      older.reject('replaced', 'the same enclave key has connected again');
    }
    this.#onEvent({ type: 'joined', session });
    this.#change(session);
  }

  #change(session: OnlineSession): void {
    if (this.#providers.get(session.registration.identity.providerId) !== session) return;
    this.#models.update(session);
    for (const { id } of session.models) if (!this.#firstSeen.has(id)) this.#firstSeen.set(id, this.#rules.now());
    this.#tellCapacity(session.models);
    if (this.#closing && session.jobs.used === 0) session.reject('shutting_down', 'the coordinator is shutting down');
  }

  #leave(session: ProviderSession, end: SessionEnd): void {
    this.#connected.delete(session);
    if (session.registration !== null) {
      const { providerId } = session.registration.identity;
      this.#models.remove(session as OnlineSession);
      if (this.#providers.get(providerId) === session) this.#providers.delete(providerId);
      this.#tellCapacity(session.models);
    }
    this.#onEvent({ type: 'left', session, end });
  }

  #candidate(session: OnlineSession): Candidate & { readonly session: OnlineSession } {
    const { identity, slots } = session.registration;
    return {
      session,
      providerId: identity.providerId,
      serialNumber: identity.attestation.serial_number,
      unroutable: this.#unroutable(session),
      slots,
      usedSlots: session.jobs.used,
      failuresInARow: session.failuresInARow,
    };
  }

  #unroutable(session: OnlineSession): Unroutable | null {
    if (this.#quarantined.has(session.registration.identity.providerId)) return 'quarantined';
    if (session.draining) return 'draining';
    if (session.trust().level === null) return 'untrusted';
    if (session.key === null) return 'key_expired';
    return session.heldOff ? 'held_off' : null;
  }

  #tellCapacity(models: readonly ModelOffer[]): void {
    for (const listener of this.#capacityListeners) listener(models);
  }

  #checkLife(): void {
    const now = this.#rules.now();
    for (const session of [...this.#connected]) session.checkLife(now);
  }
}

/** A provider that is only full or paused for a moment still serves its models. */
function isServing(reason: Unroutable | null): boolean {
  return reason === null || reason === 'held_off';
}
