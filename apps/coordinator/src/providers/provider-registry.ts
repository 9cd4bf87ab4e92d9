/**
 * The registry of connected providers: who is here, what they serve, and who takes jobs. One session per enclave key, the
 * newest; every entry belongs to the session that made it, so that the late end of an old one never removes the new one.
 */
import type { ImageOffer, ModelOffer, ModelType, ProviderId, TrustLevel } from '@inference/protocol';
import {
  type AnswerSample,
  type DrainDemand,
  estimateFromHardware,
  type IneligibleReason,
  ineligibleReasons,
  isPlausibleRate,
  isProven,
  ModelIndex,
  measuredRates,
  meetsTrustFloor,
  namedMembers,
  namesProvider,
  type PlacementConstraints,
  PrefixAffinity,
  type PromptPrefix,
  type ProviderFacts,
  type ProviderJobs,
  type ProviderPool,
  resolveClaimants,
  Scheduler,
  type SchedulingDecision,
  type SchedulingRequest,
  type ThroughputEstimate,
  ThroughputStats,
  type UnavailableReason,
  unavailableReason,
} from '@inference/scheduler';
import type { WebSocket } from 'ws';
import { FirstSeenTimes } from './placement/first-seen-times.js';
import { listedModels, MAX_NAMES_PER_PROVIDER } from './placement/listed-models.js';
import { PlacementReports } from './placement/placement-reports.js';
import { isServing, type ProviderStatus, providerFacts, statusOf } from './placement/provider-status.js';
import type { OperatorQuarantine } from './placement/quarantine.js';
import { AnswerLengthStats, type ComparedLength } from './reputation/answer-lengths.js';
import { type ReputationEvent, ReputationRegistry } from './reputation/reputation-registry.js';
import type { ReputationPersistence } from './reputation/reputation-store.js';
import { GracefulShutdown, rejectShuttingDown } from './session/drain.js';
import { JobSlot } from './session/job-slot.js';
import { type OnlineSession, ProviderSession } from './session/provider-session.js';
import type { Transport } from './session/provider-socket.js';
import { faultOf } from './session/session-fault.js';
import type { SessionEnd, SessionOptions } from './session/session-options.js';
import { providerOfToken } from './session/session-token.js';
import type { TrustAnchor } from './verification/chain/trust-anchor.js';
import type { DeviceEvidence } from './verification/evidence.js';

/** What the registry reports; the log is one listener. */
export type ProviderEvent =
  | { readonly type: 'joined'; readonly session: OnlineSession }
  | { readonly type: 'left'; readonly session: ProviderSession; readonly end: SessionEnd }
  /** The provider was told a new trust level, status or state of a part. */
  | { readonly type: 'standing'; readonly session: OnlineSession; readonly status: ProviderStatus }
  | ReputationEvent;

/** Whom a request is for. */
export type ProviderSelector = Pick<PlacementConstraints, 'providerSerial' | 'providerId' | 'trustFloor'>;

export const ANY_PROVIDER: ProviderSelector = { providerSerial: null, trustFloor: null };

export interface ServedModel {
  readonly offer: ModelOffer;
  readonly sessions: readonly OnlineSession[];
  /** When this process first saw the model, in milliseconds. */
  readonly firstSeenAt: number;
}

/** Time for which the names of listed models are kept, in milliseconds. */
const LISTED_NAMES_MS = 1000;

export interface ModelListing {
  readonly models: readonly ServedModel[];
  /** The models of one provider, as far as they are listed. */
  namesOf(session: OnlineSession): string[];
}

export class ProviderRegistry {
  readonly #rules: SessionOptions;
  readonly #onEvent: (event: ProviderEvent) => void;
  readonly #connected = new Set<ProviderSession>();
  readonly #providers = new Map<ProviderId, OnlineSession>();
  /** Sessions of `#providers` by the serial number that they claim. */
  readonly #serials = new Map<string, Set<OnlineSession>>();
  readonly #models = new ModelIndex<OnlineSession>(new ThroughputStats());
  readonly #prefixAffinity = new PrefixAffinity();
  readonly #answerLengthStats: AnswerLengthStats;
  #names: { readonly at: number; readonly size: number; readonly ids: readonly string[] } | null = null;
  readonly placementReports: PlacementReports<OnlineSession>;
  readonly #scheduler: Scheduler<OnlineSession>;
  readonly #firstSeen = new FirstSeenTimes((model) => this.#models.pool(model) !== undefined);
  /** What earlier jobs of each enclave key mean for it. */
  readonly reputations: ReputationRegistry;
  readonly #lookUpQuarantine: (providerId: ProviderId) => OperatorQuarantine | null;
  readonly #capacityListeners = new Set<(models: readonly ModelOffer[]) => void>();
  readonly #livenessTimer: NodeJS.Timeout;
  /** Null while the coordinator stays. */
  #shutdown: GracefulShutdown | null = null;

  constructor(options: {
    rules: SessionOptions;
    random: () => number;
    onEvent: (event: ProviderEvent) => void;
    /** Left out: reputations end with the process. */
    reputations?: ReputationPersistence;
    /** Machines that an operator took out of routing. Left out: none. */
    holdOf?: (providerId: ProviderId) => OperatorQuarantine | null;
  }) {
    this.#rules = options.rules;
    this.#answerLengthStats = new AnswerLengthStats(options.rules.now);
    this.#onEvent = options.onEvent;
    this.#lookUpQuarantine = options.holdOf ?? (() => null);
    this.reputations = new ReputationRegistry({
      now: options.rules.now,
      random: options.random,
      onEvent: options.onEvent,
      ...(options.reputations === undefined ? {} : { persistence: options.reputations }),
      onChange: (providerId) => {
        // Those who wait for its models may have nobody left to wait for, or one more.
        const session = this.#providers.get(providerId);
        if (session !== undefined) this.#change(session);
      },
    });
    this.placementReports = new PlacementReports(options.rules.now);
    this.#scheduler = new Scheduler({
      models: this.#models,
      now: options.rules.now,
      random: options.random,
      facts: (session, now) => (this.#isCurrent(session) ? this.#factsAt(session, now) : null),
      isDistrusted: ({ providerId }) => this.reputations.isDistrusted(providerId),
    });
    // What lies unread after the process itself was held up is read before anybody counts as silent.
    this.#livenessTimer = setInterval(() => setImmediate(() => this.#checkLiveness()), options.rules.timings.pingMs);
  }

  /** Sockets open, registered or not. */
  get connections(): number {
    return this.#connected.size;
  }

  /** Takes in a provider's fresh connection. `onRegistered` is called once its provider has proved itself. */
  accept(socket: WebSocket, transport: Transport, onRegistered: () => void = () => {}): ProviderSession {
    const session = new ProviderSession(socket, transport, this.#rules, {
      registered: (online) => {
        onRegistered();
        this.#join(online);
      },
      changed: (online) => this.#change(online),
      closed: (closed, end) => this.#leave(closed, end),
    });
    this.#connected.add(session);
    if (this.#shutdown !== null) rejectShuttingDown(session);
    return session;
  }

  /** Whether at least one provider serves the model now, free or not. */
  serves(model: string): boolean {
    return (this.#models.pool(model)?.serving ?? 0) > 0;
  }

  /** Whether a model that is served is for this: text, vectors, or images. */
  isOfType(model: string, type: ModelType): boolean {
    return this.#models.isOfType(model, type);
  }

  /**
   * Jobs that the providers of a model take at once which have it in memory or load it, all together; with an audience, those of them
   * that may have such a request.
   */
  slotCount(model: string, audience: ProviderSelector = ANY_PROVIDER): number {
    const { trustFloor } = audience;
    const board = this.#models.pool(model);
    if (board === undefined) return 0;
    if (!namesProvider(audience)) return trustFloor === 'hardware' ? board.hardwareSlots : board.slots;
    let slots = 0;
    for (const { subject, facts, load } of namedMembers(board, audience)) {
      if (load.kind !== 'cold' && meetsTrustFloor(facts.trustLevel, trustFloor) && this.#isServing(subject)) slots += facts.slots;
    }
    return slots;
  }

  /**
   * Resolves a serial number among all connected providers, whatever they serve: the provider whose certificate chain proves it, the
   * only one that claims it, or none (null). `ambiguous`: several claim it and none proves it.
   */
  resolveSerial(serialNumber: string): ProviderId | 'ambiguous' | null {
    const claimants = [...(this.#serials.get(serialNumber) ?? [])].map((session) => ({ facts: this.#facts(session) }));
    const bearers = resolveClaimants(claimants);
    if (claimants.length > 0 && bearers.length === 0) return 'ambiguous';
    // A machine that has several proved keys may be served under each of them.
    return bearers.length === 1 ? (bearers[0]?.facts.providerId ?? null) : null;
  }

  /** What the machines make that serve image models now, free or not, by model. */
  imageOffers(): ReadonlyMap<string, readonly ImageOffer[]> {
    const offered = new Map<string, ImageOffer[]>();
    for (const [model, session] of this.#imageSessions()) {
      const offer = imageOfferOf(session, model);
      if (offer === undefined || !this.#isServing(session)) continue;
      const offers = offered.get(model);
      if (offers === undefined) offered.set(model, [offer]);
      else offers.push(offer);
    }
    return offered;
  }

  /** Providers of a model that do not make such images. */
  *unfitForImages(model: string, fits: (offer: ImageOffer | undefined) => boolean): Iterable<ProviderId> {
    for (const { subject, facts } of this.#models.pool(model)?.members() ?? []) {
      if (!fits(imageOfferOf(subject, model))) yield facts.providerId;
    }
  }

  /** Whether a machine could load the model for one more job. */
  canLoad(model: string): boolean {
    return (this.#models.pool(model)?.cold ?? 0) > 0;
  }

  /** Whether some machine of at least this trust would take a request for the model at this moment, perhaps after loading it. */
  isFree(model: string, trustFloor: TrustLevel | null = null): boolean {
    const open = this.#models.pool(model)?.open ?? [];
    return trustFloor === 'hardware' ? open.some(({ traits }) => traits.hasHardwareTrust) : open.length > 0;
  }

  /** The longest context among the machines that serve the model (only of those that are named, if any are), in tokens. Null: none. */
  contextLength(model: string, named: Pick<PlacementConstraints, 'providerSerial' | 'providerId'> | null): number | null {
    const board = this.#models.pool(model);
    if (board === undefined) return null;
    if (named === null || !namesProvider(named)) return board.maxContextTokens;
    let longest: number | null = null;
    for (const { subject, contextTokens } of namedMembers(board, named)) {
      if (this.#isServing(subject)) longest = Math.max(longest ?? 0, contextTokens);
    }
    return longest;
  }

  /**
   * Chooses among the providers of a model, those that still know the beginning of the prompt first where that is quicker.
   * `chain`: its prefixes, the shortest first. With `placed`, take a slot of the first before anything else happens.
   */
  choose(model: string, request: SchedulingRequest, chain: readonly PromptPrefix[] = []): SchedulingDecision<OnlineSession> {
    const at = this.#rules.now();
    const warm = chain.length === 0 ? [] : this.#prefixAffinity.candidates(chain, at, (providerId) => this.#jobsOf(providerId));
    const demand = warm.length === 0 ? request : { ...request, warm };
    const { decision, pool, now } = this.#scheduler.choose(model, demand);
    // A look for a spare machine is no placement.
    if (pool !== null && request.idleOnly !== true) this.placementReports.decided(model, pool, demand, decision, now);
    return decision;
  }

  /** Why each provider of a model may not have such a request now. */
  ineligibleReasons(model: string, demands: PlacementConstraints): ReadonlyMap<ProviderId, IneligibleReason> {
    return ineligibleReasons(this.#models.pool(model)?.members() ?? [], demands, this.#rules.now());
  }

  /** Reserves a place on a session for one job of a model. */
  takeSlot(session: OnlineSession, model: string): JobSlot {
    const slot = new JobSlot(session);
    this.#models.jobPlaced(session, model, this.#rules.now());
    session.statistics.placements++;
    this.#updateIndex(session);
    return slot;
  }

  /** Why a provider gets no job of anyone at this moment, or null. */
  unavailableReason(session: OnlineSession): UnavailableReason | null {
    return unavailableReason(this.#facts(session), this.#rules.now());
  }

  /** The session that a token was told to, while it lives; null for a wrong one. */
  sessionByToken(token: string): OnlineSession | null {
    const providerId = providerOfToken(token);
    const session = providerId === null ? undefined : this.#providers.get(providerId);
    return session?.ownsToken(token) === true ? session : null;
  }

  /** The rates that placement goes by for each model of a provider. */
  speeds(session: OnlineSession): readonly { readonly model: string; readonly speed: ThroughputEstimate }[] {
    const { providerId } = session.registration.identity;
    return session.models.flatMap(({ id }) => {
      const member = this.#models.pool(id)?.member(providerId);
      return member === undefined ? [] : [{ model: id, speed: member.speed }];
    });
  }

  /** Whether enough answers of the session's provider verified for its rates with the model to count as measured, or a maker's chain holds. */
  isProven(session: OnlineSession, model: string): boolean {
    const member = this.#models.pool(model)?.member(session.registration.identity.providerId);
    return member !== undefined && isProven(member);
  }

  /** Connected providers of a model that earn for this account. */
  *providersOfOwner(model: string, accountId: string): Iterable<ProviderId> {
    for (const { subject, facts } of this.#models.pool(model)?.members() ?? []) {
      if (subject.ownerAccountId === accountId) yield facts.providerId;
    }
  }

  /** Takes in how fast a verified answer was. */
  recordThroughput(session: OnlineSession, model: string, sample: AnswerSample): void {
    session.statistics.answerVerified(model);
    this.#models.recordAnswer(session, model, sample, this.#rules.now());
  }

  /** Takes in the signed counts of a whole answer of text that verified. */
  recordTokenCounts(session: OnlineSession, model: string, tokens: Pick<ComparedLength, 'hiddenTokens' | 'completionTokens'>): void {
    this.#answerLengthStats.add(session.registration.identity.providerId, model, tokens);
  }

  /** How long a session's answers are, by model, beside those of the model's other machines. */
  answerLengths(session: OnlineSession): readonly { readonly model: string; readonly length: ComparedLength }[] {
    const { providerId } = session.registration.identity;
    return session.models.flatMap(({ id }) => {
      const length = this.#answerLengthStats.compare(providerId, id, () => this.#providersOf(id));
      return length === null ? [] : [{ model: id, length }];
    });
  }

  /** False when a rate is far beyond every machine of the model that was measured, this one included. */
  isPlausibleRate(session: OnlineSession, model: string, tokensPerSecond: number): boolean {
    const { hardware, identity } = session.registration;
    const board = this.#models.pool(model);
    const speed = board?.member(identity.providerId)?.speed ?? estimateFromHardware(hardware);
    return isPlausibleRate(tokensPerSecond, { speed, hardware }, measuredRates(board?.members() ?? []));
  }

  /** Takes in that a session answered a prompt with these prefixes, and what of it the signed receipt says that it knew before. */
  recordPrefixes(session: OnlineSession, chain: readonly PromptPrefix[], cachedTokens: number): void {
    const { providerId } = session.registration.identity;
    const jobs = this.#jobsOf(providerId);
    if (jobs !== null) this.#prefixAffinity.record(chain, cachedTokens, providerId, jobs, this.#rules.now());
  }

  /** Models that at least one provider serves, by id. */
  servedModels(): readonly ServedModel[] {
    const served: ServedModel[] = [];
    for (const [id, board] of this.#models.pools()) {
      const model = this.#servedOf(id, board);
      if (model !== null) served.push(model);
    }
    return served.sort((a, b) => (a.offer.id < b.offer.id ? -1 : 1));
  }

  /** The models that public reads list, by id. */
  listing(): ModelListing {
    const served = this.servedModels();
    const candidates = served.map(({ offer, sessions }) => ({ id: offer.id, sessions }));
    const isProven = (session: OnlineSession, model: string): boolean =>
      session.statistics.hasAnswered(model) || this.isProven(session, model);
    const listed = listedModels(candidates, {
      isProven,
      ownerOf: ({ ownerAccountId }) => ownerAccountId,
    });
    const models = served.filter(({ offer }) => listed.has(offer.id));
    const unlisted = new Set(served.flatMap(({ offer: { id } }) => (listed.has(id) ? [] : [id])));
    const isShown = (session: OnlineSession, id: string, index: number): boolean =>
      !unlisted.has(id) && (index < MAX_NAMES_PER_PROVIDER || isProven(session, id));
    const namesOf = (session: OnlineSession): string[] =>
      session.models.map(({ id }) => id).filter((id, index) => isShown(session, id, index));
    return { models, namesOf };
  }

  /** Ids of the listed models. Kept for a moment, because each request for an unknown model is compared with them. */
  listedNames(): readonly string[] {
    const at = this.#rules.now();
    const { size } = this.#models;
    if (this.#names === null || this.#names.size !== size || Math.abs(at - this.#names.at) >= LISTED_NAMES_MS) {
      this.#names = { at, size, ids: this.listing().models.map(({ offer }) => offer.id) };
    }
    return this.#names.ids;
  }

  /** A served model by its id, listed or not; null: nobody serves it. */
  servedModel(id: string): ServedModel | null {
    const board = this.#models.pool(id);
    return board === undefined ? null : this.#servedOf(id, board);
  }

  /** The session of a provider, while it is connected. */
  sessionOf(providerId: ProviderId): OnlineSession | null {
    return this.#providers.get(providerId) ?? null;
  }

  sessions(): Iterable<OnlineSession> {
    return this.#providers.values();
  }

  /** `online`, or the reason why the provider takes no jobs. */
  status(session: OnlineSession): ProviderStatus {
    return statusOf(this.#facts(session), this.#rules.now());
  }

  /** Where managed-device chains must end. */
  get anchor(): TrustAnchor {
    return this.#rules.anchor;
  }

  /**
   * Takes in what is stored for an enclave key, verifies it, and tells the provider what it is worth now. Nothing happens
   * when that key is not connected: its evidence is set again when it joins.
   */
  setDeviceEvidence(providerId: ProviderId, evidence: DeviceEvidence | null): void {
    this.#providers.get(providerId)?.setDeviceEvidence(evidence);
  }

  /** An owner took a machine out of their account: it is told, if it is connected. */
  unlinked(providerId: ProviderId): void {
    this.#providers.get(providerId)?.unlinked();
  }

  /** The catalogue is another one now: every provider's offers are judged by it. */
  reevaluateOffers(): void {
    for (const session of this.#providers.values()) session.reevaluateOffers();
  }

  /** An answer of the provider verified. */
  answerVerified(providerId: ProviderId): void {
    this.reputations.recordAnswer(providerId);
    this.#providers.get(providerId)?.answerVerified();
  }

  /** Whether another session of the same key has taken this one's place. */
  isReplaced(session: OnlineSession): boolean {
    const current = this.#providers.get(session.registration.identity.providerId);
    return current !== undefined && current !== session;
  }

  /** Why an operator took a machine out of routing, or null. */
  quarantineOf(providerId: ProviderId): OperatorQuarantine | null {
    return this.#lookUpQuarantine(providerId);
  }

  /** Operators took these machines out of routing, or let them in again. */
  quarantinesChanged(providerIds: Iterable<ProviderId>): void {
    for (const providerId of providerIds) {
      const session = this.#providers.get(providerId);
      if (session !== undefined) this.#change(session);
    }
  }

  /** Calls back with the models whose supply may have changed. Returns the function that ends this. */
  onCapacity(listener: (models: readonly ModelOffer[]) => void): () => void {
    this.#capacityListeners.add(listener);
    return () => this.#capacityListeners.delete(listener);
  }

  /**
   * The coordinator goes away: new connections are turned away from now on, and providers without jobs are told to connect again,
   * but for those that running jobs may still need. `wanted` is asked again whenever a provider has become idle.
   */
  drain(wanted: () => Iterable<DrainDemand>): void {
    const { now } = this.#rules;
    this.#shutdown = new GracefulShutdown(wanted, {
      connected: this.#connected,
      membersOf: (model) => this.#models.pool(model)?.members() ?? [],
      now,
    });
  }

  /** The coordinator goes away now: all are told to connect again. */
  closeSessions(): void {
    this.#shutdown?.stop();
    for (const session of [...this.#connected]) rejectShuttingDown(session);
  }

  /** Ends what is left. */
  close(): void {
    clearInterval(this.#livenessTimer);
    this.#shutdown?.stop();
    this.reputations.close();
    for (const session of [...this.#connected]) session.terminate();
  }

  #join(session: OnlineSession): void {
    const { providerId } = session.registration.identity;
    const older = this.#providers.get(providerId);
    this.#providers.set(providerId, session);
    this.#listSerial(session);
    if (older !== undefined) this.#unlistSerial(older);
    if (older !== undefined && older !== session) {
      this.#models.remove(older);
      older.reject('replaced', 'the same enclave key has connected again');
    }
    this.#onEvent({ type: 'joined', session });
    this.#change(session);
  }

  #change(session: OnlineSession): void {
    if (!this.#isCurrent(session)) return;
    this.#updateIndex(session);
    this.placementReports.follow(session);
    for (const { id } of session.models) this.#firstSeen.record(id, this.#rules.now());
    const status = this.status(session);
    if (
      session.reportStatus(
        status,
        this.reputations.restrictionMessage(session.registration.identity.providerId),
        this.quarantineOf(session.registration.identity.providerId),
      )
    )
      this.#onEvent({ type: 'standing', session, status });
    this.#notifyCapacity(session.models);
    this.#shutdown?.changed(session);
  }

  #leave(session: ProviderSession, end: SessionEnd): void {
    this.#connected.delete(session);
    if (session.registration !== null) {
      const { providerId } = session.registration.identity;
      const fault = session.jobs.running > 0 ? faultOf(end, session.isDraining) : null;
      if (fault !== null) this.reputations.recordFault(providerId, fault.fault, fault.detail);
      this.#models.remove(session as OnlineSession);
      this.#unlistSerial(session as OnlineSession);
      if (this.#providers.get(providerId) === session) this.#providers.delete(providerId);
      this.#notifyCapacity(session.models);
    }
    this.#onEvent({ type: 'left', session, end });
  }

  *#providersOf(model: string): Iterable<ProviderId> {
    for (const { facts } of this.#models.pool(model)?.members() ?? []) yield facts.providerId;
  }

  #servedOf(id: string, board: ProviderPool<OnlineSession>): ServedModel | null {
    if (board.serving === 0) return null;
    const sessions = [...board.members()].map(({ subject }) => subject).filter((session) => this.#isServing(session));
    const offer = sessions[0]?.models.find((model) => model.id === id);
    return offer === undefined ? null : { offer, sessions, firstSeenAt: this.#firstSeen.at(id) ?? this.#rules.now() };
  }

  #listSerial(session: OnlineSession): void {
    const serial = session.registration.identity.attestation.serial_number;
    this.#serials.set(serial, (this.#serials.get(serial) ?? new Set()).add(session));
  }

  #unlistSerial(session: OnlineSession): void {
    const serial = session.registration.identity.attestation.serial_number;
    const sessions = this.#serials.get(serial);
    if (sessions?.delete(session) === true && sessions.size === 0) this.#serials.delete(serial);
  }

  /** Whether it stands for its provider: no newer session of the same key has come, and it has not ended. */
  #isCurrent(session: OnlineSession): boolean {
    return this.#providers.get(session.registration.identity.providerId) === session;
  }

  *#imageSessions(): Iterable<[string, OnlineSession]> {
    for (const [model, sessions] of this.#models.imageProviders()) for (const session of sessions) yield [model, session];
  }

  #facts(session: OnlineSession): ProviderFacts {
    return this.#factsAt(session, this.#rules.now());
  }

  #factsAt(session: OnlineSession, now: number): ProviderFacts {
    const { providerId } = session.registration.identity;
    const rules = { isQuarantined: this.quarantineOf(providerId) !== null, minTrustLevel: this.#rules.minTrustLevel ?? 'self_signed' };
    return providerFacts(session, this.reputations.get(providerId), rules, now);
  }

  #isServing(session: OnlineSession): boolean {
    return isServing(this.#facts(session), this.#rules.now());
  }

  #jobsOf(providerId: ProviderId): ProviderJobs | null {
    const session = this.#providers.get(providerId);
    if (session === undefined) return null;
    const { slots, registeredAt } = session.registration;
    return { placements: session.statistics.placements, slots, since: registeredAt };
  }

  /** Puts a session where it belongs on the boards of its models. */
  #updateIndex(session: OnlineSession): void {
    if (!this.#isCurrent(session)) return;
    const now = this.#rules.now();
    this.#models.update(session, this.#factsAt(session, now), now);
  }

  #notifyCapacity(models: readonly ModelOffer[]): void {
    for (const listener of this.#capacityListeners) listener(models);
  }

  #checkLiveness(): void {
    for (const session of [...this.#connected]) session.checkLiveness();
  }
}

/** What a session makes with an image model; undefined where it offers the model for something else. */
export function imageOfferOf(session: OnlineSession, model: string): ImageOffer | undefined {
  const offer = session.models.find(({ id, model_type }) => id === model && model_type === 'image');
  return offer?.image;
}
