/**
 * The registry of connected providers: who is here, what they serve, and who takes jobs. One session per enclave key, the
 * newest; every entry belongs to the session that made it, so that the late end of an old one never removes the new one.
 */
import type { ImageOffer, ModelOffer, ModelType, ProviderId, TrustLevel } from '@inference/protocol';
import type { WebSocket } from 'ws';
import type { TrustAnchor } from '../attestation/chain/anchor.js';
import type { DeviceEvidence } from '../attestation/evidence.js';
import { AnswerLengths, type ComparedLength } from './answer-lengths.js';
import { Explanations } from './decisions/explanations.js';
import { Farewell, sayGoodbye } from './farewell.js';
import { FirstSeen } from './first-seen.js';
import type { Hold } from './hold.js';
import { listedModels, MAX_NAMES_PER_MACHINE } from './listed-models.js';
import { ModelBoards } from './model-boards.js';
import { Placement, type PlacementDemand } from './placement.js';
import { type OnlineSession, ProviderSession } from './provider-session.js';
import type { Transport } from './provider-socket.js';
import type { ReputationKeeper } from './reputation/reputation-book.js';
import { type StandingEvent, Standings } from './reputation/standings.js';
import type { Board } from './scheduler/board.js';
import { isProvedMember, type Speed } from './scheduler/cost.js';
import { bearersOf, type Demands, type Gate, gateOf, type Ineligible, isNamed, meetsFloor, type ProviderFacts } from './scheduler/gates.js';
import { isPossibleRate, measuredRates } from './scheduler/possible-rate.js';
import { type Decision, explain, namedMembers } from './scheduler/schedule.js';
import { guessedSpeed, type Sample, SpeedBook } from './scheduler/speed-book.js';
import { type Jobs, type Prefix, Warmth } from './scheduler/warmth.js';
import type { SessionEnd, SessionRules } from './session-facts.js';
import { faultOf } from './session-fault.js';
import { providerOfToken } from './session-token.js';
import { Slot } from './slot.js';
import type { Wanted } from './spares.js';
import { factsOf, isServing, type ProviderStatus, statusOf } from './standing.js';

/** What the registry reports; the log is one listener. */
export type FleetEvent =
  | { readonly type: 'joined'; readonly session: OnlineSession }
  | { readonly type: 'left'; readonly session: ProviderSession; readonly end: SessionEnd }
  /** The provider was told a new trust level, status or state of a part. */
  | { readonly type: 'standing'; readonly session: OnlineSession; readonly status: ProviderStatus }
  | StandingEvent;

/** Whom a request is for. */
export type Audience = Pick<Demands, 'providerSerial' | 'providerId' | 'trustFloor'>;

export const EVERYBODY: Audience = { providerSerial: null, trustFloor: null };

export interface ServedModel {
  readonly offer: ModelOffer;
  readonly sessions: readonly OnlineSession[];
  /** When this process first saw the model, in milliseconds. */
  readonly firstSeenAt: number;
}

/** Time for which the names of listed models are kept, in milliseconds. */
const NAMES_MS = 1000;

export interface ModelListing {
  readonly models: readonly ServedModel[];
  /** The models of one provider, as far as they are listed. */
  namesOf(session: OnlineSession): string[];
}

export class Fleet {
  readonly #rules: SessionRules;
  readonly #onEvent: (event: FleetEvent) => void;
  readonly #connected = new Set<ProviderSession>();
  readonly #providers = new Map<ProviderId, OnlineSession>();
  /** Sessions of `#providers` by the serial number that they claim. */
  readonly #serials = new Map<string, Set<OnlineSession>>();
  readonly #models = new ModelBoards<OnlineSession>(new SpeedBook());
  readonly #warmth = new Warmth();
  readonly #lengths: AnswerLengths;
  #names: { readonly at: number; readonly size: number; readonly ids: readonly string[] } | null = null;
  readonly explanations: Explanations<OnlineSession>;
  readonly #placement: Placement<OnlineSession>;
  readonly #firstSeen = new FirstSeen((model) => this.#models.board(model) !== undefined);
  /** What earlier jobs of each enclave key mean for it. */
  readonly standings: Standings;
  readonly #holdOf: (providerId: ProviderId) => Hold | null;
  readonly #capacityListeners = new Set<(models: readonly ModelOffer[]) => void>();
  readonly #life: NodeJS.Timeout;
  /** Null while the coordinator stays. */
  #farewell: Farewell | null = null;

  constructor(options: {
    rules: SessionRules;
    random: () => number;
    onEvent: (event: FleetEvent) => void;
    /** Left out: reputations end with the process. */
    reputations?: ReputationKeeper;
    /** Machines that an operator took out of routing. Left out: none. */
    holdOf?: (providerId: ProviderId) => Hold | null;
  }) {
    this.#rules = options.rules;
    this.#lengths = new AnswerLengths(options.rules.now);
    this.#onEvent = options.onEvent;
    this.#holdOf = options.holdOf ?? (() => null);
    this.standings = new Standings({
      now: options.rules.now,
      random: options.random,
      onEvent: options.onEvent,
      ...(options.reputations === undefined ? {} : { keeper: options.reputations }),
      onChange: (providerId) => {
        // Those who wait for its models may have nobody left to wait for, or one more.
        const session = this.#providers.get(providerId);
        if (session !== undefined) this.#change(session);
      },
    });
    this.explanations = new Explanations(options.rules.now);
    this.#placement = new Placement({
      boards: this.#models,
      now: options.rules.now,
      random: options.random,
      facts: (session, now) => (this.#isCurrent(session) ? this.#factsAt(session, now) : null),
      isDistrusted: ({ providerId }) => this.standings.isDistrusted(providerId),
    });
    // What lies unread after the process itself was held up is read before anybody counts as silent.
    this.#life = setInterval(() => setImmediate(() => this.#checkLife()), options.rules.timings.pingMs);
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
    if (this.#farewell !== null) sayGoodbye(session);
    return session;
  }

  /** Whether at least one provider serves the model now, free or not. */
  serves(model: string): boolean {
    return (this.#models.board(model)?.serving ?? 0) > 0;
  }

  /** Whether a model that is served is for this: text, vectors, or images. */
  isOfType(model: string, type: ModelType): boolean {
    return this.#models.isOfType(model, type);
  }

  /**
   * Jobs that the providers of a model take at once which have it in memory or load it, all together; with an audience, those of them
   * that may have such a request.
   */
  slotsOf(model: string, audience: Audience = EVERYBODY): number {
    const { trustFloor } = audience;
    const board = this.#models.board(model);
    if (board === undefined) return 0;
    if (!isNamed(audience)) return trustFloor === 'hardware' ? board.hardwareSlots : board.slots;
    let slots = 0;
    for (const { subject, facts, load } of namedMembers(board, audience)) {
      if (load.kind !== 'cold' && meetsFloor(facts.trustLevel, trustFloor) && this.#isServing(subject)) slots += facts.slots;
    }
    return slots;
  }

  /**
   * Resolves a serial number among all connected providers, whatever they serve: the provider whose certificate chain proves it, the
   * only one that claims it, or none (null). `ambiguous`: several claim it and none proves it.
   */
  bearerOf(serialNumber: string): ProviderId | 'ambiguous' | null {
    const claimants = [...(this.#serials.get(serialNumber) ?? [])].map((session) => ({ facts: this.#facts(session) }));
    const bearers = bearersOf(claimants);
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
    for (const { subject, facts } of this.#models.board(model)?.members() ?? []) {
      if (!fits(imageOfferOf(subject, model))) yield facts.providerId;
    }
  }

  /** Whether a machine could load the model for one more job. */
  canLoad(model: string): boolean {
    return (this.#models.board(model)?.cold ?? 0) > 0;
  }

  /** Whether some machine of at least this trust would take a request for the model at this moment, perhaps after loading it. */
  isFree(model: string, trustFloor: TrustLevel | null = null): boolean {
    const open = this.#models.board(model)?.open ?? [];
    return trustFloor === 'hardware' ? open.some(({ traits }) => traits.hardwareTrust) : open.length > 0;
  }

  /** The longest context among the machines that serve the model (only of those that are named, if any are), in tokens. Null: none. */
  contextLength(model: string, named: Pick<Demands, 'providerSerial' | 'providerId'> | null): number | null {
    const board = this.#models.board(model);
    if (board === undefined) return null;
    if (named === null || !isNamed(named)) return board.longestContext;
    let longest: number | null = null;
    for (const { subject, contextLength } of namedMembers(board, named)) {
      if (this.#isServing(subject)) longest = Math.max(longest ?? 0, contextLength);
    }
    return longest;
  }

  /**
   * Chooses among the providers of a model, those that still know the beginning of the prompt first where that is quicker.
   * `chain`: its prefixes, the shortest first. With `placed`, take a slot of the first before anything else happens.
   */
  choose(model: string, request: PlacementDemand, chain: readonly Prefix[] = []): Decision<OnlineSession> {
    const at = this.#rules.now();
    const warm = chain.length === 0 ? [] : this.#warmth.places(chain, at, (providerId) => this.#jobsOf(providerId));
    const demand = warm.length === 0 ? request : { ...request, warm };
    const { decision, board, now } = this.#placement.choose(model, demand);
    // A look for a spare machine is no placement.
    if (board !== null && request.idleOnly !== true) this.explanations.decided(model, board, demand, decision, now);
    return decision;
  }

  /** Why each provider of a model may not have such a request now. */
  whyNot(model: string, demands: Demands): ReadonlyMap<ProviderId, Ineligible> {
    return explain(this.#models.board(model)?.members() ?? [], demands, this.#rules.now());
  }

  /** Reserves a place on a session for one job of a model. */
  takeSlot(session: OnlineSession, model: string): Slot {
    const slot = new Slot(session);
    this.#models.began(session, model, this.#rules.now());
    session.record.placements++;
    this.#place(session);
    return slot;
  }

  /** Why a provider gets no job of anyone at this moment, or null. */
  gate(session: OnlineSession): Gate | null {
    return gateOf(this.#facts(session), this.#rules.now());
  }

  /** The session that a token was told to, while it lives; null for a wrong one. */
  ofToken(token: string): OnlineSession | null {
    const providerId = providerOfToken(token);
    const session = providerId === null ? undefined : this.#providers.get(providerId);
    return session?.ownsToken(token) === true ? session : null;
  }

  /** The rates that placement goes by for each model of a provider. */
  speeds(session: OnlineSession): readonly { readonly model: string; readonly speed: Speed }[] {
    const { providerId } = session.registration.identity;
    return session.models.flatMap(({ id }) => {
      const member = this.#models.board(id)?.member(providerId);
      return member === undefined ? [] : [{ model: id, speed: member.speed }];
    });
  }

  /** Whether enough answers of the session's provider verified for its rates with the model to count as measured, or a maker's chain holds. */
  isProved(session: OnlineSession, model: string): boolean {
    const member = this.#models.board(model)?.member(session.registration.identity.providerId);
    return member !== undefined && isProvedMember(member);
  }

  /** Connected providers of a model that earn for this account. */
  *ofOwner(model: string, accountId: string): Iterable<ProviderId> {
    for (const { subject, facts } of this.#models.board(model)?.members() ?? []) {
      if (subject.ownerAccountId === accountId) yield facts.providerId;
    }
  }

  /** Takes in how fast a verified answer was. */
  learn(session: OnlineSession, model: string, sample: Sample): void {
    session.record.answered(model);
    this.#models.learn(session, model, sample, this.#rules.now());
  }

  /** Takes in the signed counts of a whole answer of text that verified. */
  counted(session: OnlineSession, model: string, tokens: Pick<ComparedLength, 'hiddenTokens' | 'completionTokens'>): void {
    this.#lengths.add(session.registration.identity.providerId, model, tokens);
  }

  /** How long a session's answers are, by model, beside those of the model's other machines. */
  answerLengths(session: OnlineSession): readonly { readonly model: string; readonly length: ComparedLength }[] {
    const { providerId } = session.registration.identity;
    return session.models.flatMap(({ id }) => {
      const length = this.#lengths.compared(providerId, id, () => this.#providersOf(id));
      return length === null ? [] : [{ model: id, length }];
    });
  }

  /** False when a rate is far beyond every machine of the model that was measured, this one included. */
  couldDecode(session: OnlineSession, model: string, tokensPerSecond: number): boolean {
    const { hardware, identity } = session.registration;
    const board = this.#models.board(model);
    const speed = board?.member(identity.providerId)?.speed ?? guessedSpeed(hardware);
    return isPossibleRate(tokensPerSecond, { speed, hardware }, measuredRates(board?.members() ?? []));
  }

  /** Takes in that a session answered a prompt with these prefixes, and what of it the signed receipt says that it knew before. */
  remember(session: OnlineSession, chain: readonly Prefix[], cachedTokens: number): void {
    const { providerId } = session.registration.identity;
    const jobs = this.#jobsOf(providerId);
    if (jobs !== null) this.#warmth.answered(chain, cachedTokens, providerId, jobs, this.#rules.now());
  }

  /** Models that at least one provider serves, by id. */
  servedModels(): readonly ServedModel[] {
    const served: ServedModel[] = [];
    for (const [id, board] of this.#models.models()) {
      const model = this.#servedOf(id, board);
      if (model !== null) served.push(model);
    }
    return served.sort((a, b) => (a.offer.id < b.offer.id ? -1 : 1));
  }

  /** The models that public reads list, by id. */
  listing(): ModelListing {
    const served = this.servedModels();
    const candidates = served.map(({ offer, sessions }) => ({ id: offer.id, sessions }));
    const isProved = (session: OnlineSession, model: string): boolean => session.record.hasAnswered(model) || this.isProved(session, model);
    const listed = listedModels(candidates, {
      isProved,
      ownerOf: ({ ownerAccountId }) => ownerAccountId,
    });
    const models = served.filter(({ offer }) => listed.has(offer.id));
    const unlisted = new Set(served.flatMap(({ offer: { id } }) => (listed.has(id) ? [] : [id])));
    const isShown = (session: OnlineSession, id: string, index: number): boolean =>
      !unlisted.has(id) && (index < MAX_NAMES_PER_MACHINE || isProved(session, id));
    const namesOf = (session: OnlineSession): string[] =>
      session.models.map(({ id }) => id).filter((id, index) => isShown(session, id, index));
    return { models, namesOf };
  }

  /** Ids of the listed models. Kept for a moment, because each request for an unknown model is compared with them. */
  listedNames(): readonly string[] {
    const at = this.#rules.now();
    const { size } = this.#models;
    if (this.#names === null || this.#names.size !== size || Math.abs(at - this.#names.at) >= NAMES_MS) {
      this.#names = { at, size, ids: this.listing().models.map(({ offer }) => offer.id) };
    }
    return this.#names.ids;
  }

  /** A served model by its id, listed or not; null: nobody serves it. */
  servedModel(id: string): ServedModel | null {
    const board = this.#models.board(id);
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
  judgeOffersAgain(): void {
    for (const session of this.#providers.values()) session.judgeAgain();
  }

  /** An answer of the provider verified. */
  answeredWell(providerId: ProviderId): void {
    this.standings.answered(providerId);
    this.#providers.get(providerId)?.answeredWell();
  }

  /** Whether another session of the same key has taken this one's place. */
  isReplaced(session: OnlineSession): boolean {
    const current = this.#providers.get(session.registration.identity.providerId);
    return current !== undefined && current !== session;
  }

  /** Why an operator took a machine out of routing, or null. */
  hold(providerId: ProviderId): Hold | null {
    return this.#holdOf(providerId);
  }

  /** Operators took these machines out of routing, or let them in again. */
  holdsChanged(providerIds: Iterable<ProviderId>): void {
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
  drain(wanted: () => Iterable<Wanted>): void {
    const { now } = this.#rules;
    this.#farewell = new Farewell(wanted, {
      connected: this.#connected,
      membersOf: (model) => this.#models.board(model)?.members() ?? [],
      now,
    });
  }

  /** The coordinator goes away now: all are told to connect again. */
  dismiss(): void {
    this.#farewell?.stop();
    for (const session of [...this.#connected]) sayGoodbye(session);
  }

  /** Ends what is left. */
  close(): void {
    clearInterval(this.#life);
    this.#farewell?.stop();
    this.standings.close();
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
    this.#place(session);
    this.explanations.follow(session);
    for (const { id } of session.models) this.#firstSeen.saw(id, this.#rules.now());
    const status = this.status(session);
    if (
      session.tellStanding(
        status,
        this.standings.messageFor(session.registration.identity.providerId),
        this.hold(session.registration.identity.providerId),
      )
    )
      this.#onEvent({ type: 'standing', session, status });
    this.#tellCapacity(session.models);
    this.#farewell?.changed(session);
  }

  #leave(session: ProviderSession, end: SessionEnd): void {
    this.#connected.delete(session);
    if (session.registration !== null) {
      const { providerId } = session.registration.identity;
      const fault = session.jobs.running > 0 ? faultOf(end, session.draining) : null;
      if (fault !== null) this.standings.faulted(providerId, fault.fault, fault.detail);
      this.#models.remove(session as OnlineSession);
      this.#unlistSerial(session as OnlineSession);
      if (this.#providers.get(providerId) === session) this.#providers.delete(providerId);
      this.#tellCapacity(session.models);
    }
    this.#onEvent({ type: 'left', session, end });
  }

  *#providersOf(model: string): Iterable<ProviderId> {
    for (const { facts } of this.#models.board(model)?.members() ?? []) yield facts.providerId;
  }

  #servedOf(id: string, board: Board<OnlineSession>): ServedModel | null {
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
    for (const [model, sessions] of this.#models.ofImages()) for (const session of sessions) yield [model, session];
  }

  #facts(session: OnlineSession): ProviderFacts {
    return this.#factsAt(session, this.#rules.now());
  }

  #factsAt(session: OnlineSession, now: number): ProviderFacts {
    const { providerId } = session.registration.identity;
    const rules = { held: this.hold(providerId) !== null, minTrustLevel: this.#rules.minTrustLevel ?? 'self_signed' };
    return factsOf(session, this.standings.reputation(providerId), rules, now);
  }

  #isServing(session: OnlineSession): boolean {
    return isServing(this.#facts(session), this.#rules.now());
  }

  #jobsOf(providerId: ProviderId): Jobs | null {
    const session = this.#providers.get(providerId);
    if (session === undefined) return null;
    const { slots, registeredAt } = session.registration;
    return { placements: session.record.placements, slots, since: registeredAt };
  }

  /** Puts a session where it belongs on the boards of its models. */
  #place(session: OnlineSession): void {
    if (!this.#isCurrent(session)) return;
    const now = this.#rules.now();
    this.#models.update(session, this.#factsAt(session, now), now);
  }

  #tellCapacity(models: readonly ModelOffer[]): void {
    for (const listener of this.#capacityListeners) listener(models);
  }

  #checkLife(): void {
    for (const session of [...this.#connected]) session.checkLife();
  }
}

/** What a session makes with an image model; undefined where it offers the model for something else. */
export function imageOfferOf(session: OnlineSession, model: string): ImageOffer | undefined {
  const offer = session.models.find(({ id, model_type }) => id === model && model_type === 'image');
  return offer?.image;
}
