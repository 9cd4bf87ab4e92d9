/** `ProviderSession`: one connection of a provider, from the handshake to the close. Jobs are placed on it once it has registered. */
import { randomUUID } from 'node:crypto';
import {
  decodeFrame,
  FrameError,
  type ModelOffer,
  type ModelsRefused,
  type ProviderMessage,
  parseProviderMessage,
  type RejectionCode,
  type RejectionReason,
  type ReportedAvailability,
} from '@inference/protocol';
import type { WebSocket } from 'ws';
import type { ProviderStatus } from '../placement/provider-status.js';
import type { OperatorQuarantine } from '../placement/quarantine.js';
import { firstSelfSignedGap } from '../verification/trust-policy.js';
import { Backoff } from './backoff.js';
import { EnrolmentRequests } from './enrolment-requests.js';
import { LinkRequests } from './link-requests.js';
import { MESSAGE_COSTS, MessageBudget } from './message-budget.js';
import { SessionOffers } from './model-offers.js';
import { OwnerCommands } from './owner-commands.js';
import { ProviderSocket, type Rejection, TOO_SLOW, type Transport } from './provider-socket.js';
import { outOfTurn, Refusal } from './refusal.js';
import { Handshake, type Registered } from './registration/handshake.js';
import { isSameToken, newSessionToken, type TokenHash } from './registration/session-token.js';
import { EMPTY_PAYLOAD_BYTES, RunningJobs } from './running-jobs.js';
import { SessionAvailability } from './session-availability.js';
import { SessionEvidence } from './session-evidence.js';
import type { Registration, SessionCounters, SessionEnd, SessionOptions } from './session-options.js';
import { SessionStatistics } from './session-statistics.js';
import { LastReported, type RestrictionMessage } from './trust-message.js';

interface SessionEvents {
  /** The provider has registered. Its confirmation is queued, and leaves in the next turn of the event loop. */
  registered(session: OnlineSession): void;
  /** Something that placement considers may have changed, such as models, slots, trust or availability. */
  changed(session: OnlineSession): void;
  closed(session: ProviderSession, end: SessionEnd): void;
}

export type OnlineSession = ProviderSession & { readonly registration: Registration };

type Phase = 'handshake' | 'online' | 'closed';

/** Bytes of a frame that belongs to no job, per unit of the message budget. A frame may have half a megabyte. */
const STRAY_BYTES_PER_UNIT = 4096;

export class ProviderSession {
  readonly sessionId = randomUUID();
  readonly counters: SessionCounters = { unknownMessages: 0, strayMessages: 0, passedChallenges: 0, missedChallenges: 0, lateAnswers: 0 };
  readonly jobs: RunningJobs;
  readonly evidence: SessionEvidence;
  readonly #rules: SessionOptions;
  readonly #events: SessionEvents;
  readonly #socket: ProviderSocket;
  readonly #enrolments: EnrolmentRequests;
  readonly #links: LinkRequests | null;
  readonly #handshake: Handshake;
  #phase: Phase = 'handshake';
  #tokenHash: TokenHash | null = null;
  readonly #lastReported = new LastReported();
  readonly #budget: MessageBudget;

  registration: Registration | null = null;
  /** Network address of the connection, as returned by `networkOf`; null: unknown. */
  network: string | null = null;
  /** Commands of the provider's owner; null before registration. */
  ownerCommands: OwnerCommands | null = null;
  readonly #offers: SessionOffers;
  isDraining = false;
  readonly statistics = new SessionStatistics();
  readonly #backoff: Backoff;
  readonly #availability = new SessionAvailability();

  constructor(socket: WebSocket, transport: Transport, rules: SessionOptions, events: SessionEvents) {
    this.#rules = rules;
    this.#events = events;
    this.#enrolments = new EnrolmentRequests(rules.enrolments, rules.now);
    this.#links = rules.links === undefined ? null : new LinkRequests(rules.links, (message) => this.isOpen && this.#socket.send(message));
    this.#budget = new MessageBudget(rules.now);
    this.#offers = new SessionOffers(rules.evaluateOffers);
    const { backoffMs: firstMs, maxBackoffMs: maxMs, cancelConfirmMs } = rules.timings;
    this.#backoff = new Backoff({ firstMs, maxMs }, rules.now, () => this.#changed());
    this.#socket = new ProviderSocket(socket, transport, rules.now, {
      text: (text) => this.#receiveText(text),
      binary: (bytes) => this.#receiveFrame(bytes),
      pingOrPong: () => this.#charge(1),
      backlogChanged: () => this.#changed(),
      sendProgressed: (jobId) => this.jobs.sending(jobId),
      closed: (rejection) => this.#close(rejection),
    });
    this.jobs = new RunningJobs({ socket: this.#socket, cancelConfirmMs, onFreed: () => this.#changed() });
    this.evidence = new SessionEvidence(rules, this.counters, {
      sendChallenge: (nonce) => this.#socket.send({ type: 'challenge', nonce }),
      changed: () => this.#changed(),
      failed: (refusal) => this.reject(refusal.code, refusal.message, refusal.reason),
    });
    this.#handshake = new Handshake(this.sessionId, rules, {
      welcome: (message) => this.#socket.send(message),
      tooSlow: (waitedFor) => this.reject('too_slow', `no ${waitedFor} in time`),
    });
  }

  /** This session, if the provider has registered; otherwise null. */
  get online(): OnlineSession | null {
    return isRegistered(this) ? this : null;
  }

  get isOpen(): boolean {
    return this.#phase !== 'closed';
  }

  get lastHeardAt(): number {
    return this.#socket.lastHeardAt;
  }

  /** Model of the newest job if still served, else the first served model; null: none. */
  get currentModel(): string | null {
    const latest = this.models.find((model) => model.id === this.statistics.latestModel);
    return (latest ?? this.models[0])?.id ?? null;
  }

  ownsToken(hash: TokenHash): boolean {
    return this.isOpen && this.#tokenHash !== null && isSameToken(hash, this.#tokenHash);
  }

  get availability(): ReportedAvailability {
    return this.#availability.reported;
  }

  /** Whether the provider takes no new jobs: it reported `leaving` or `away`. */
  get isAway(): boolean {
    return this.#availability.isAway;
  }

  /** Whether a new job could exceed the maximum of unsent bytes. */
  get isBacklogged(): boolean {
    return this.#socket.isBacklogged;
  }

  /** End of the backoff after the provider reported full slots, in milliseconds since 1970. */
  get backoffUntil(): number {
    return this.#backoff.until;
  }

  /** Number of consecutive backoffs since the last verified answer. */
  get backoffCount(): number {
    return this.#backoff.count;
  }

  /** Accepted model offers. A new array after each change. */
  get models(): readonly ModelOffer[] {
    return this.#offers.accepted;
  }

  get refusedModels(): ModelsRefused['models'] {
    return this.#offers.refused;
  }

  reevaluateOffers(): void {
    if (this.#phase !== 'online') return;
    const changed = this.#offers.reevaluate();
    this.#reportRefusedOffers();
    if (changed) this.#changed();
  }

  /** Sends trust and status to the provider if they changed. Returns whether a message was sent. */
  reportStatus(status: ProviderStatus, restriction: RestrictionMessage | null, quarantine: OperatorQuarantine | null): boolean {
    const message = this.#lastReported.nextMessage(this.evidence.verdict(), status, restriction, quarantine);
    if (message !== null) this.#socket.send(message);
    return message !== null;
  }

  /** Starts a backoff, because the provider reported full slots. No effect while the provider is away. */
  backOff(): void {
    if (this.isAway) return;
    this.#backoff.start();
    // Placement considers the slot free, so it must learn of the backoff.
    this.#changed();
  }

  /** Ends a backoff: a verified answer shows that the provider takes jobs. */
  answerVerified(): void {
    if (this.#backoff.reset()) this.#changed();
  }

  get ownerAccountId(): string | null {
    return this.#links?.ownerAccountId ?? null;
  }

  /** Ends the link to the owner's account, after the owner or an operator removed the provider from it. */
  unlinked(): void {
    if (this.#phase === 'online') this.#links?.unlink();
  }

  /** Records that the provider takes no new jobs on this connection. */
  drain(): void {
    if (this.isDraining) return;
    this.isDraining = true;
    this.#changed();
  }

  /** Pings the provider, or closes the session of one that is silent or does not read. Called every `pingMs`. Counts calls, not time. */
  checkLiveness(): void {
    const { pingMs, silenceMs } = this.#rules.timings;
    if (this.#socket.checkProgress() * pingMs > silenceMs) this.reject('too_slow', TOO_SLOW);
    else if (this.#socket.unansweredPings * pingMs > silenceMs) this.#socket.terminate();
    else this.#socket.ping();
  }

  /** `field`: see {@link Rejection}. */
  reject(code: RejectionCode, message: string, reason: RejectionReason | null = null, field: string | null = null): void {
    this.#socket.reject(code, message, reason, field);
  }

  terminate(): void {
    this.#socket.terminate();
  }

  #receiveText(text: string): void {
    const parsed = parseProviderMessage(text);
    switch (parsed.kind) {
      case 'unknown_type':
        this.counters.unknownMessages++;
        this.#charge(1);
        return;
      case 'invalid':
        this.reject(parsed.code, parsed.reason, null, parsed.field);
        return;
      case 'message':
        this.#guard(() => this.#receive(parsed.message));
    }
  }

  #receive(message: ProviderMessage): void {
    switch (this.#phase) {
      case 'handshake': {
        const registered = this.#handshake.receive(message);
        if (registered !== null) this.#begin(registered);
        return;
      }
      case 'online':
        this.#update(message);
        return;
      case 'closed':
        return;
    }
  }

  /** Registers the provider if its evidence supports at least trust level `self_signed`. */
  #begin({ admitted, registration, models, availability, firstChallenge }: Registered): void {
    this.#phase = 'online';
    this.evidence.begin(admitted, firstChallenge);
    this.#offers.take(models);
    this.#availability.update(availability);
    this.registration = registration;
    this.ownerCommands = new OwnerCommands({
      remoteControl: registration.remoteControl,
      send: (command) => this.#socket.send(command),
      now: this.#rules.now,
    });
    const trust = this.evidence.verdict();
    if (trust.level === null) throw new Refusal('attestation_refused', `the provider is not trusted: ${firstSelfSignedGap(trust)}`);
    const { providerId } = admitted.identity;
    const { token, hash } = newSessionToken(providerId);
    this.#tokenHash = hash;
    this.#socket.send({ type: 'registered', provider_id: providerId, trust_level: trust.level, token });
    this.#reportRefusedOffers();
    if (this.online !== null) this.#events.registered(this.online);
  }

  #update(message: ProviderMessage): void {
    const cost = MESSAGE_COSTS[message.type] ?? 0;
    if (cost > 0 && !this.#charge(cost)) return;
    switch (message.type) {
      case 'hello':
      case 'register':
        throw outOfTurn(message.type);
      case 'challenge_answer':
        this.evidence.answerChallenge(message.challenge);
        return;
      case 'key_update':
        this.evidence.updateKey(message.key);
        return;
      case 'models':
        this.#offers.take(message.models);
        this.#reportRefusedOffers();
        this.#changed();
        return;
      case 'load':
        if (this.registration !== null && this.statistics.recordLoad(message, this.registration.hardware)) this.#changed();
        return;
      case 'draining':
        this.drain();
        return;
      case 'availability':
        if (this.#availability.update(message)) this.#changed();
        return;
      case 'job_accepted':
      case 'job_progress':
      case 'job_failed':
      case 'job_completed':
        this.#countStray(this.jobs.receive(message));
        return;
      case 'enrolment_request':
        this.#enrol();
        return;
      case 'link':
        if (this.registration !== null) this.#links?.submit(this.registration.identity.providerId, message.token);
        return;
      case 'machine_settings':
        this.ownerCommands?.reported(message.settings);
        return;
      case 'owner_command_result':
        this.#countStray(this.ownerCommands?.answered(message) === true);
        return;
      default:
        assertNever(message);
    }
  }

  #reportRefusedOffers(): void {
    const refusals = this.#offers.refusalMessage();
    if (refusals !== null) this.#socket.send(refusals);
  }

  #enrol(): void {
    if (this.registration === null) return;
    void this.#enrolments.answer(this.registration.identity).then((answer) => {
      if (this.isOpen) this.#socket.send(answer);
    });
  }

  #receiveFrame(bytes: Uint8Array): void {
    this.#guard(() => {
      if (this.#phase !== 'online') throw outOfTurn('a binary frame');
      const frame = decodeFrame(bytes);
      if (frame.type !== 'response') throw outOfTurn('a request frame');
      // Empty frames use up no credit, so they cost budget instead. The last frame of an answer may be empty.
      if (frame.payload.length <= EMPTY_PAYLOAD_BYTES && !frame.final && !this.#charge(1)) return;
      this.#countStray(this.jobs.receiveFrame(frame), Math.max(1, Math.ceil(frame.payload.length / STRAY_BYTES_PER_UNIT)));
    });
  }

  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (error instanceof Refusal) this.reject(error.code, error.message, error.reason);
      else if (error instanceof FrameError) this.reject('bad_message', error.message);
      else throw error;
    }
  }

  #countStray(known: boolean, cost = 1): void {
    if (known) return;
    this.counters.strayMessages++;
    this.#charge(cost);
  }

  /** False: the message budget is exceeded, and the session was rejected. */
  #charge(cost: number): boolean {
    if (this.#budget.spend(cost)) return true;
    this.reject('misbehaved', 'too many messages that are not part of an answer');
    return false;
  }

  #changed(): void {
    if (this.#phase === 'online' && this.online !== null) this.#events.changed(this.online);
  }

  #close(rejection: Rejection | null): void {
    this.#phase = 'closed';
    this.#handshake.stop();
    this.#backoff.stop();
    this.evidence.stop();
    this.ownerCommands?.close();
    // The registry removes the session first, so that its lost jobs are not placed on it again.
    this.#events.closed(this, rejection === null ? { by: 'provider' } : { by: 'coordinator', ...rejection });
    this.jobs.loseAll();
  }
}

function isRegistered(session: ProviderSession): session is OnlineSession {
  return session.registration !== null;
}

function assertNever(message: never): never {
  throw new TypeError(`unhandled message ${message}`);
}
