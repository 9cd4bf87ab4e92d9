/**
 * `Handshake`: messages before registration, in the order `hello`, `welcome`, `register`. Run by `ProviderSession`.
 *
 * Ends with a verified registration, a {@link Refusal}, or a call of `tooSlow`.
 */
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
  /** The provider did not send `hello` or `register` in time. */
  tooSlow(waitedFor: 'hello' | 'register'): void;
}

export interface Registered {
  readonly admitted: Admitted;
  readonly registration: Registration;
  readonly models: Register['models'];
  readonly availability: ReportedAvailability;
  /** The answer to the challenge in `welcome`. */
  readonly firstChallenge: ChallengeTranscript;
}

export class Handshake {
  readonly #sessionId: string;
  readonly #options: SessionOptions;
  readonly #events: HandshakeEvents;
  readonly #nonce = newNonce();
  #waitsFor: 'hello' | 'register' = 'hello';
  #agent = { name: '', version: '' };
  /** Timeout of the next message. */
  #deadline: NodeJS.Timeout;

  constructor(sessionId: string, options: SessionOptions, events: HandshakeEvents) {
    this.#sessionId = sessionId;
    this.#options = options;
    this.#events = events;
    this.#deadline = this.#startDeadline();
  }

  /** Handles a message. Null: the handshake continues. Throws {@link Refusal} for an unexpected or invalid message. */
  receive(message: ProviderMessage): Registered | null {
    const isExpected = message.type === this.#waitsFor;
    if (isExpected && message.type === 'register') return this.#register(message);
    if (!isExpected || message.type !== 'hello') throw outOfTurn(message.type);
    this.#welcome(message.versions, message.agent);
    return null;
  }

  stop(): void {
    clearTimeout(this.#deadline);
  }

  #welcome(versions: readonly number[], agent: { name: string; version: string }): void {
    const version = negotiateVersion(versions);
    if (version === null) throw new Refusal('version_unsupported', 'no protocol version in common');
    this.#agent = agent;
    this.#waitsFor = 'register';
    this.stop();
    this.#deadline = this.#startDeadline();
    const { now, heartbeatMs } = this.#options;
    this.#events.welcome({
      type: 'welcome',
      version,
      session_id: this.#sessionId,
      nonce: this.#nonce,
      server_time: now(),
      receipts: [...RECEIPT_VERSIONS],
      remote_control_versions: [...REMOTE_CONTROL_VERSIONS],
      ...(heartbeatMs === undefined ? {} : { heartbeat_ms: heartbeatMs }),
    });
  }

  #register(message: Register): Registered {
    const now = this.#options.now();
    const { allowSimulatedEnclave } = this.#options;
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
    const firstChallenge = { statement: message.challenge, nonce: this.#nonce, sessionId: this.#sessionId, answeredAt: now };
    const { models, availability = { state: 'serving' } } = message;
    return { admitted, registration, models, availability, firstChallenge };
  }

  #startDeadline(): NodeJS.Timeout {
    return setTimeout(() => this.#events.tooSlow(this.#waitsFor), this.#options.timings.handshakeMs);
  }
}
