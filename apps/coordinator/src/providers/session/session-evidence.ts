/**
 * `SessionEvidence`: the evidence of one connection (attestation, sealing key, challenges, device findings), and the trust that follows
 * from the evidence.
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
  /** Evidence or the clock changed the verdict. */
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
  /** Replaced by a newer key, but accepted until its end: clients may have sealed to the key just before. */
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

  /** Starts with the verified statements of the registration, and with its challenge. */
  begin({ identity, posture, key }: Admitted, firstChallenge: ChallengeTranscript): void {
    this.#identity = identity;
    this.#key = key;
    this.#trust.admitted(identity, posture, key);
    this.#challenges = this.#startChallenges(identity, firstChallenge);
  }

  verdict(): TrustVerdict {
    return this.#trust.verdict();
  }

  /** Current sealing key for jobs; null after the key's expiry until a new key arrives. */
  get key(): SealingKey | null {
    return this.#key !== null && this.#key.notAfter > this.#rules.now() ? this.#key : null;
  }

  /** Keys for sealed requests that the provider still opens: the newest and the previous key, until they end. */
  get acceptedKeyIds(): readonly KeyId[] {
    const now = this.#rules.now();
    return [this.#key, this.#previousKey].flatMap((key) => (key !== null && key.notAfter > now ? [key.keyId] : []));
  }

  get posture(): Posture | null {
    return this.#trust.posture;
  }

  /** The newest challenge that was answered correctly, for verification by others. */
  get lastChallenge(): ChallengeTranscript | null {
    return this.#challenges?.transcript ?? null;
  }

  /** Evidence of device management for this key. Chains were verified when the evidence was read. */
  get device(): DeviceFindings | null {
    return this.#trust.device;
  }

  /** The newest challenge was answered in time. */
  get isAttested(): boolean {
    return this.#challenges?.latestPassed ?? false;
  }

  /** Whether the manufacturer's certificate chain holds for the key now. */
  get isDeviceChainVerified(): boolean {
    return isPartOk(this.verdict(), 'device_chain');
  }

  /** Verifies the stored evidence of this key; null: none is stored. */
  setDevice(evidence: DeviceEvidence | null): void {
    this.#trust.deviceChanged(evidence);
    this.#events.changed();
  }

  /** Replaces the sealing key. Throws a {@link Refusal} for an invalid statement. */
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
