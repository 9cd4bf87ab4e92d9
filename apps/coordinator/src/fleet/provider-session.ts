/**
 * One connection of one provider, from the first message to the last: hello, welcome, register, registered, then jobs,
 * challenges and updates. A provider is in the registry only between `registered` and the end of its session.
 */
import { randomUUID } from 'node:crypto';
import {
  decodeFrame,
  FrameError,
  type Hardware,
  type JobId,
  type JobMessage,
  type ModelOffer,
  negotiateVersion,
  type Posture,
  type ProviderMessage,
  parseProviderMessage,
  type Register,
  type RejectionCode,
} from '@inference/protocol';
import type { WebSocket } from 'ws';
import { admit, checkKey, type Identity, Refusal, type SealingKey } from './admission.js';
import { Challenges, newNonce } from './challenges.js';
import type { JobHandle, JobSink } from './job-sink.js';
import { ProviderSocket, type Transport } from './provider-socket.js';
import { RunningJobs } from './running-jobs.js';
import { type FleetTimings, maxChallengeAge } from './timings.js';
import { type TrustVerdict, trustLevel } from './trust.js';

export interface SessionRules {
  readonly timings: FleetTimings;
  readonly allowSimulatedEnclave: boolean;
  readonly now: () => number;
}

export interface SessionEvents {
  /** Statements verified. The registry takes the provider in before it is told. */
  registered(session: OnlineSession): void;
  /** Models, load, slots or standing changed. */
  changed(session: OnlineSession): void;
  closed(session: ProviderSession, end: SessionEnd): void;
}

export type SessionEnd =
  | { readonly by: 'coordinator'; readonly code: RejectionCode; readonly message: string }
  | { readonly by: 'provider' };

/** Messages that were tolerated, for the operator. */
export interface SessionCounters {
  unknownMessages: number;
  /** Messages and frames for jobs that are not running here; a few are normal after a cancel. */
  strayMessages: number;
  missedChallenges: number;
}

/** What is known once a provider has registered. */
export interface Registration {
  readonly identity: Identity;
  readonly hardware: Hardware;
  readonly slots: number;
  readonly agentName: string;
  readonly agentVersion: string;
  readonly registeredAt: number;
}

export type OnlineSession = ProviderSession & { readonly registration: Registration };

type Phase = 'hello' | 'register' | 'online' | 'closed';

export class ProviderSession {
  readonly sessionId = randomUUID();
  readonly counters: SessionCounters = { unknownMessages: 0, strayMessages: 0, missedChallenges: 0 };
  readonly jobs: RunningJobs;
  readonly #rules: SessionRules;
  readonly #events: SessionEvents;
  readonly #socket: ProviderSocket;
  readonly #nonce = newNonce();
  #phase: Phase = 'hello';
  #deadline: NodeJS.Timeout;
  #agent = { name: '', version: '' };
  #challenges: Challenges | null = null;
  #key: SealingKey | null = null;
  #posture: Posture | null = null;
  #challengePassedAt: number | null = null;
  #latestChallengePassed = false;

  registration: Registration | null = null;
  models: readonly ModelOffer[] = [];
  draining = false;
  /** Jobs as the provider reports them, and its latest decode rate in tokens per second. */
  reportedJobs = 0;
  decodeTps: number | null = null;
  /** Failures that were the provider's fault since its last good answer. */
  failuresInARow = 0;
  requestsServed = 0;
  tokensGenerated = 0;
  #heldOffUntil = 0;
  #holdOff: NodeJS.Timeout | null = null;

  constructor(socket: WebSocket, transport: Transport, rules: SessionRules, events: SessionEvents) {
    this.#rules = rules;
    this.#events = events;
    this.jobs = new RunningJobs(() => this.#changed());
    this.#socket = new ProviderSocket(socket, transport, rules.now, {
      text: (text) => this.#receiveText(text),
      binary: (bytes) => this.#receiveFrame(bytes),
      closed: (rejection) => this.#close(rejection),
    });
    this.#deadline = this.#expect('hello');
  }

  get open(): boolean {
    return this.#phase !== 'closed';
  }

  get lastHeardAt(): number {
    return this.#socket.lastHeardAt;
  }

  /** The key that jobs are sealed to now, or null when it has expired and no new one came. */
  get key(): SealingKey | null {
    return this.#key !== null && this.#key.notAfter > this.#rules.now() ? this.#key : null;
  }

  get posture(): Posture | null {
    return this.#posture;
  }

  /** The newest challenge was answered in time. */
  get attested(): boolean {
    return this.#latestChallengePassed;
  }

  get heldOff(): boolean {
    return this.#heldOffUntil > this.#rules.now();
  }

  trust(): TrustVerdict {
    if (this.registration === null || this.#posture === null) return { level: null, reason: 'attestation_unverified' };
    const evidence = {
      attestationVerified: true,
      posture: this.#posture,
      admittedSimulation: this.registration.identity.simulated && this.#rules.allowSimulatedEnclave,
      challengePassedAt: this.#challengePassedAt,
    };
    return trustLevel(evidence, this.#rules.now(), maxChallengeAge(this.#rules.timings));
  }

  /** Sends a job whose slot was reserved. A session that ended meanwhile reports it lost, in a later turn. */
  startJob(message: JobMessage, frames: readonly Uint8Array[], sink: JobSink): JobHandle {
    const jobId = message.context.job_id;
    this.jobs.start(jobId, sink);
    this.#socket.sendWithFrames(message, frames);
    if (!this.open) queueMicrotask(() => this.jobs.loseAll());
    return { grant: (bytes) => this.#grant(jobId, bytes), cancel: () => this.#cancel(jobId) };
  }

  /** Sends no new job to a provider that said it is full, for a moment. */
  holdOff(): void {
    const pause = this.#rules.timings.holdOffMs;
    this.#heldOffUntil = this.#rules.now() + pause;
    if (this.#holdOff !== null) clearTimeout(this.#holdOff);
    this.#holdOff = setTimeout(() => this.#changed(), pause + 1);
  }

  drain(): void {
    if (this.draining) return;
    this.draining = true;
    this.#changed();
  }

  /** Pings a peer that is there and ends the session of one that is not. */
  checkLife(now: number): void {
    if (now - this.#socket.lastHeardAt > this.#rules.timings.silenceMs) this.#socket.terminate();
    else this.#socket.ping();
  }

  reject(code: RejectionCode, message: string): void {
    this.#socket.reject(code, message);
  }

  terminate(): void {
    this.#socket.terminate();
  }

  #receiveText(text: string): void {
    const parsed = parseProviderMessage(text);
    switch (parsed.kind) {
      case 'unknown_type':
        this.counters.unknownMessages++;
        return;
      case 'invalid':
        this.reject(parsed.code, parsed.reason);
        return;
      case 'message':
        this.#guard(() => this.#receive(parsed.message));
    }
  }

  #receive(message: ProviderMessage): void {
    switch (this.#phase) {
      case 'hello':
        if (message.type !== 'hello') throw outOfTurn(message.type);
        this.#hello(message.versions, message.agent);
        return;
      case 'register':
        if (message.type !== 'register') throw outOfTurn(message.type);
        this.#register(message);
        return;
      case 'online':
        this.#update(message);
        return;
      case 'closed':
        return;
    }
  }

  #hello(versions: readonly number[], agent: { name: string; version: string }): void {
    const version = negotiateVersion(versions);
    if (version === null) throw new Refusal('version_unsupported', 'no protocol version in common');
    this.#agent = agent;
    this.#phase = 'register';
    clearTimeout(this.#deadline);
    this.#deadline = this.#expect('register');
    this.#socket.send({ type: 'welcome', version, session_id: this.sessionId, nonce: this.#nonce, server_time: this.#rules.now() });
  }

  #register(message: Register): void {
    const now = this.#rules.now();
    const admitted = admit(message, {
      now,
      allowSimulatedEnclave: this.#rules.allowSimulatedEnclave,
      nonce: this.#nonce,
      sessionId: this.sessionId,
    });
    clearTimeout(this.#deadline);
    this.#phase = 'online';
    this.#key = admitted.key;
    this.#posture = admitted.posture;
    this.#challengePassedAt = now;
    this.#latestChallengePassed = true;
    this.models = message.models;
    this.registration = {
      identity: admitted.identity,
      hardware: message.hardware,
      slots: message.slots,
      agentName: this.#agent.name,
      agentVersion: this.#agent.version,
      registeredAt: now,
    };
    this.#challenges = this.#startChallenges(admitted.identity);
    const trust = this.trust();
    if (trust.level === null) throw new Refusal('attestation_refused', `the provider is not trusted: ${trust.reason}`);
    this.#socket.send({ type: 'registered', provider_id: admitted.identity.providerId, trust_level: trust.level });
    this.#events.registered(this as OnlineSession);
  }

  #update(message: ProviderMessage): void {
    switch (message.type) {
      case 'hello':
      case 'register':
        throw outOfTurn(message.type);
      case 'challenge_answer':
        this.#challenges?.answer(message.challenge);
        return;
      case 'key_update':
        if (this.registration !== null) this.#key = checkKey(message.key, this.registration.identity, this.#rules.now());
        this.#changed();
        return;
      case 'models':
        this.models = message.models;
        this.#changed();
        return;
      case 'load':
        this.reportedJobs = message.active_jobs;
        this.decodeTps = message.decode_tps ?? this.decodeTps;
        return;
      case 'draining':
        this.drain();
        return;
      case 'job_accepted':
        this.#count(this.jobs.accepted(message.job_id));
        return;
      case 'job_failed':
        this.#count(this.jobs.failed(message.job_id, message.failure));
        return;
      case 'job_completed':
        this.#count(this.jobs.completed(message));
        return;
      default:
        assertNever(message);
    }
  }

  #receiveFrame(bytes: Uint8Array): void {
    this.#guard(() => {
      if (this.#phase !== 'online') throw outOfTurn('a binary frame');
      const frame = decodeFrame(bytes);
      if (frame.type !== 'response') throw outOfTurn('a request frame');
      this.#count(this.jobs.frame(frame));
    });
  }

  #startChallenges(identity: Identity): Challenges {
    return new Challenges({
      identity,
      sessionId: this.sessionId,
      timings: this.#rules.timings,
      now: this.#rules.now,
      events: {
        send: (nonce) => this.#socket.send({ type: 'challenge', nonce }),
        passed: (posture) => {
          this.#posture = posture;
          this.#challengePassedAt = this.#rules.now();
          this.#latestChallengePassed = true;
          this.#changed();
        },
        missed: () => {
          this.counters.missedChallenges++;
          this.#latestChallengePassed = false;
        },
        failed: (refusal) => {
          this.#latestChallengePassed = false;
          this.reject(refusal.code, refusal.message);
        },
      },
    });
  }

  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (error instanceof Refusal) this.reject(error.code, error.message);
      else if (error instanceof FrameError) this.reject('bad_message', error.message);
      else throw error;
    }
  }

  #expect(what: 'hello' | 'register'): NodeJS.Timeout {
    return setTimeout(() => this.reject('too_slow', `no ${what} in time`), this.#rules.timings.handshakeMs);
  }

  #grant(jobId: JobId, bytes: number): void {
    if (this.jobs.has(jobId)) this.#socket.send({ type: 'credit', job_id: jobId, bytes });
  }

  #cancel(jobId: JobId): void {
    if (this.jobs.cancel(jobId, this.#rules.timings.cancelConfirmMs)) this.#socket.send({ type: 'cancel', job_id: jobId });
  }

  #count(known: boolean): void {
    if (!known) this.counters.strayMessages++;
  }

  #changed(): void {
    if (this.#phase === 'online') this.#events.changed(this as OnlineSession);
  }

  #close(rejection: { readonly code: RejectionCode; readonly message: string } | null): void {
    this.#phase = 'closed';
    clearTimeout(this.#deadline);
    if (this.#holdOff !== null) clearTimeout(this.#holdOff);
    this.#challenges?.stop();
    // The registry forgets the session first, so that a job that is lost is not given to it again.
    this.#events.closed(this, rejection === null ? { by: 'provider' } : { by: 'coordinator', ...rejection });
    this.jobs.loseAll();
  }
}

function outOfTurn(what: string): Refusal {
  return new Refusal('out_of_turn', `${what} is not expected now`);
}

function assertNever(message: never): never {
  throw new TypeError(`unhandled message ${message}`);
}
