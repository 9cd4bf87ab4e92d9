/**
 * `SessionEvidence`: attestation, sealing key, challenges and device evidence of one connection, and the trust level that they support.
 *
 * Part of `ProviderSession`.
 */
import type { KeyId, Posture, SignedStatement } from '@inference/protocol';
import type { DeviceEvidence, DeviceFindings } from '../verification/evidence.js';
import { SessionTrust } from '../verification/session-trust.js';
import { isPartOk, MAX_MANAGEMENT_AGE_MS, type TrustVerdict } from '../verification/trust-policy.js';
import type { Refusal } from './refusal.js';
import { type Admitted, checkKey, type Identity, type SealingKey } from './registration/admission.js';
import type { ChallengeTranscript } from './registration/challenge-answer.js';
import { SessionChallenges } from './session-challenges.js';
import { maxChallengeAge, type SessionCounters, type SessionOptions } from './session-options.js';

interface EvidenceEvents {
  sendChallenge(nonce: string): void;
  /** The evidence changed, or the trust verdict expired. */
  changed(): void;
  failed(refusal: Refusal): void;
}

export class SessionEvidence {
  readonly #rules: SessionOptions;
  readonly #counters: SessionCounters;
  readonly #events: EvidenceEvents;
  readonly #trust: SessionTrust;
  #identity: Identity | null = null;
  #key: SealingKey | null = null;
  /** Key before the newest one. Accepted until it expires, because clients may have sealed to it just before the change. */
  #previousKey: SealingKey | null = null;
  #challenges: SessionChallenges | null = null;

  constructor(rules: SessionOptions, counters: SessionCounters, events: EvidenceEvents) {
    this.#rules = rules;
    this.#counters = counters;
    this.#events = events;
    this.#trust = new SessionTrust({
      limits: { maxChallengeAgeMs: maxChallengeAge(rules.timings), maxManagementAgeMs: MAX_MANAGEMENT_AGE_MS },
      allowSimulatedEnclave: rules.allowSimulatedEnclave,
      anchor: rules.anchor,
      now: rules.now,
      onExpiry: () => events.changed(),
    });
  }

  /** Starts with the verified statements of the registration and the challenge answered there. */
  begin({ identity, posture, key }: Admitted, firstChallenge: ChallengeTranscript): void {
    this.#identity = identity;
    this.#key = key;
    this.#trust.admitted(identity, posture, key);
    this.#challenges = this.#startChallenges(identity, firstChallenge);
  }

  verdict(): TrustVerdict {
    return this.#trust.verdict();
  }

  /** Current sealing key; null after it has expired, until a new one arrives. */
  get key(): SealingKey | null {
    return this.#key !== null && this.#key.notAfter > this.#rules.now() ? this.#key : null;
  }

  /** Sealing keys that the provider accepts for sealed requests: the newest and the previous one, until they expire. */
  get acceptedKeyIds(): readonly KeyId[] {
    const now = this.#rules.now();
    return [this.#key, this.#previousKey].flatMap((key) => (key !== null && key.notAfter > now ? [key.keyId] : []));
  }

  get posture(): Posture | null {
    return this.#trust.posture;
  }

  get lastChallenge(): ChallengeTranscript | null {
    return this.#challenges?.transcript ?? null;
  }

  get device(): DeviceFindings | null {
    return this.#trust.device;
  }

  /** Whether the newest challenge that is not open any more was answered correctly and in time. */
  get isAttested(): boolean {
    return this.#challenges?.latestPassed ?? false;
  }

  get isDeviceChainVerified(): boolean {
    return isPartOk(this.verdict(), 'device_chain');
  }

  setDevice(evidence: DeviceEvidence | null): void {
    this.#trust.deviceChanged(evidence);
    this.#events.changed();
  }

  /** Replaces the sealing key. Throws {@link Refusal} if the statement is invalid. */
  updateKey(statement: SignedStatement): void {
    if (this.#identity === null) return;
    const key = checkKey(statement, this.#identity, this.#rules.now());
    if (key.keyId !== this.#key?.keyId) this.#previousKey = this.#key;
    this.#key = key;
    this.#trust.sealingKeyChanged(this.#key);
    this.#events.changed();
  }

  answerChallenge(statement: SignedStatement): void {
    this.#challenges?.answer(statement);
  }

  stop(): void {
    this.#challenges?.stop();
    this.#trust.stop();
  }

  #startChallenges(identity: Identity, firstChallenge: ChallengeTranscript): SessionChallenges {
    const { timings, now } = this.#rules;
    return new SessionChallenges({
      identity,
      timings,
      now,
      firstChallenge,
      send: (nonce) => this.#events.sendChallenge(nonce),
      passed: (posture) => {
        this.#counters.passedChallenges++;
        this.#trust.challengePassed(posture);
        this.#events.changed();
      },
      missed: (inARow) => {
        this.#counters.missedChallenges++;
        this.#trust.challengeMissed(inARow);
        this.#events.changed();
      },
      late: () => {
        this.#counters.lateAnswers++;
      },
      failed: (refusal) => this.#events.failed(refusal),
    });
  }
}
