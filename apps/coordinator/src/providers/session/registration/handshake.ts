/** Handshake of a connection: hello, welcome and register, in order and in time. Ends verified or refused. */
import {
  type CoordinatorMessage,
  negotiateVersion,
  type ProviderMessage,
  RECEIPT_VERSIONS,
  REMOTE_CONTROL_VERSIONS,
  type Register,
  type ReportedAvailability,
} from '@inference/protocol';
import { outOfTurn, Refusal } from '../refusal.js';
import { newNonce } from '../session-challenges.js';
import type { Registration, SessionOptions } from '../session-options.js';
import { type Admitted, admit } from './admission.js';
import type { ChallengeTranscript } from './challenge-answer.js';
import { plausibleHardware } from './plausible-hardware.js';

interface HandshakeEvents {
  welcome(message: CoordinatorMessage & { type: 'welcome' }): void;
  /** The provider sent no `hello` or no `register` in time. */
  tooSlow(waitedFor: 'hello' | 'register'): void;
}

/** The verified registration of a provider. */
export interface Registered {
  readonly admitted: Admitted;
  readonly registration: Registration;
  readonly models: Register['models'];
  readonly availability: ReportedAvailability;
  /** The challenge answered during registration. */
  readonly first: ChallengeTranscript;
}

export class Handshake {
  readonly #sessionId: string;
  readonly #rules: SessionOptions;
  readonly #events: HandshakeEvents;
  readonly #nonce = newNonce();
  #waitsFor: 'hello' | 'register' = 'hello';
  #agent = { name: '', version: '' };
  #deadline: NodeJS.Timeout;

  constructor(sessionId: string, rules: SessionOptions, events: HandshakeEvents) {
    this.#sessionId = sessionId;
    this.#rules = rules;
    this.#events = events;
    this.#deadline = this.#expect();
  }

  /** Null: the handshake continues. Throws {@link Refusal}. */
  receive(message: ProviderMessage): Registered | null {
    if (message.type !== this.#waitsFor) throw outOfTurn(message.type);
    if (message.type === 'register') return this.#register(message);
    if (message.type === 'hello') this.#hello(message.versions, message.agent);
    return null;
  }

  /** Cancels the deadline. */
  stop(): void {
    clearTimeout(this.#deadline);
  }

  #hello(versions: readonly number[], agent: { name: string; version: string }): void {
    const version = negotiateVersion(versions);
    if (version === null) throw new Refusal('version_unsupported', 'no protocol version in common');
    this.#agent = agent;
    this.#waitsFor = 'register';
    this.stop();
    this.#deadline = this.#expect();
    const server_time = this.#rules.now();
    const receipts = [...RECEIPT_VERSIONS];
    const { heartbeatMs } = this.#rules;
    const heartbeat = heartbeatMs === undefined ? {} : { heartbeat_ms: heartbeatMs };
    this.#events.welcome({
      type: 'welcome',
      version,
      session_id: this.#sessionId,
      nonce: this.#nonce,
      server_time,
      receipts,
      remote_control_versions: [...REMOTE_CONTROL_VERSIONS],
      ...heartbeat,
    });
  }

  #register(message: Register): Registered {
    const now = this.#rules.now();
    const { allowSimulatedEnclave } = this.#rules;
    const admitted = admit(message, { now, allowSimulatedEnclave, nonce: this.#nonce, sessionId: this.#sessionId });
    this.stop();
    const registration = {
      identity: admitted.identity,
      ...plausibleHardware(message.hardware, admitted.identity.attestation),
      slots: message.slots,
      receiptVersion: message.receipt_version ?? 1,
      e2eVersions: message.e2e_versions ?? [],
      servesFallbackModels: message.fallback_models ?? false,
      servesChoices: message.choices ?? false,
      ...(message.remote_control === undefined ? {} : { remoteControl: message.remote_control }),
      agentName: this.#agent.name,
      agentVersion: this.#agent.version,
      registeredAt: now,
    };
    const first = { statement: message.challenge, nonce: this.#nonce, sessionId: this.#sessionId, answeredAt: now };
    const { models, availability = { state: 'serving' } } = message;
    return { admitted, registration, models, availability, first };
  }

  #expect(): NodeJS.Timeout {
    return setTimeout(() => this.#events.tooSlow(this.#waitsFor), this.#rules.timings.handshakeMs);
  }
}
