/** `SessionTrust` collects the evidence of a connection and caches the trust verdict until evidence or time can change it. */
import type { Posture } from '@inference/protocol';
import type { Identity, SealingKey } from '../session/registration/admission.js';
import type { TrustAnchor } from './chain/trust-anchor.js';
import type { AttestationEvidence, ChallengeEvidence, DeviceEvidence, DeviceFindings, SealingKeyEvidence } from './evidence.js';
import { evaluateTrust, type TrustLimits, type TrustVerdict } from './trust-policy.js';
import { verifyDeviceEvidence } from './verify-device-evidence.js';

interface SessionTrustOptions {
  readonly limits: TrustLimits;
  readonly allowSimulatedEnclave: boolean;
  readonly anchor: TrustAnchor;
  readonly now: () => number;
  /** Called when the verdict may have changed with time alone. */
  readonly onExpiry: () => void;
}

/** Maximum delay of a Node.js timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class SessionTrust {
  readonly #options: SessionTrustOptions;
  #publicKeySha256 = '';
  #attestation: AttestationEvidence | null = null;
  #challenge: ChallengeEvidence | null = null;
  #sealingKey: SealingKeyEvidence | null = null;
  #device: DeviceFindings | null = null;
  #verdict: TrustVerdict | null = null;
  #expiryTimer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(options: SessionTrustOptions) {
    this.#options = options;
  }

  /** The verdict on the current evidence. Computed again after a change of the evidence, and when the verdict expires. */
  verdict(): TrustVerdict {
    const now = this.#options.now();
    if (this.#verdict === null || now >= this.#verdict.validUntil) {
      this.#verdict = evaluateTrust(this.#evidence(), now, this.#options.limits);
      this.#scheduleExpiry(this.#verdict, now);
    }
    return this.#verdict;
  }

  /** Device-management evidence with its verification results, or null. */
  get device(): DeviceFindings | null {
    return this.#device;
  }

  /** Newest signed posture; null before registration. */
  get posture(): Posture | null {
    return this.#challenge?.posture ?? null;
  }

  admitted(identity: Identity, posture: Posture, key: SealingKey): void {
    const { attestation, publicKeySha256, simulated } = identity;
    this.#publicKeySha256 = publicKeySha256;
    this.#attestation = {
      publicKeySha256,
      issuedAt: attestation.issued_at,
      receivedAt: this.#options.now(),
      serialNumber: attestation.serial_number,
      chipName: attestation.chip_name,
      posture: attestation.posture,
      simulated,
    };
    this.sealingKeyChanged(key);
    this.challengePassed(posture);
  }

  sealingKeyChanged(key: SealingKey): void {
    this.#sealingKey = { publicKeySha256: this.#publicKeySha256, notAfter: key.notAfter };
    this.#verdict = null;
  }

  challengePassed(posture: Posture): void {
    this.#challenge = { publicKeySha256: this.#publicKeySha256, passedAt: this.#options.now(), posture, missedSince: 0 };
    this.#verdict = null;
  }

  challengeMissed(inARow: number): void {
    if (this.#challenge !== null) this.#challenge = { ...this.#challenge, missedSince: inARow };
    this.#verdict = null;
  }

  /** Verifies the stored device evidence of this key; null: none is stored. */
  deviceChanged(evidence: DeviceEvidence | null): void {
    const attestation = this.#attestation;
    if (attestation === null) return;
    const { anchor, now } = this.#options;
    const context = { publicKeySha256: this.#publicKeySha256, attestation, anchor, now: now() };
    this.#device = evidence === null ? null : verifyDeviceEvidence(evidence, context);
    this.#verdict = null;
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#expiryTimer !== null) clearTimeout(this.#expiryTimer);
  }

  #evidence() {
    return {
      publicKeySha256: this.#publicKeySha256,
      attestation: this.#attestation,
      challenge: this.#challenge,
      sealingKey: this.#sealingKey,
      device: this.#device,
      allowSimulatedEnclave: this.#options.allowSimulatedEnclave,
    };
  }

  #scheduleExpiry(verdict: TrustVerdict, now: number): void {
    if (this.#expiryTimer !== null) clearTimeout(this.#expiryTimer);
    if (this.#isStopped || verdict.validUntil === Number.POSITIVE_INFINITY) return;
    const wait = Math.min(Math.max(1, verdict.validUntil - now), MAX_TIMER_MS);
    this.#expiryTimer = setTimeout(() => this.#expired(), wait);
  }

  #expired(): void {
    const now = this.#options.now();
    // Timers may fire slightly early, and a long wait takes several timers.
    if (this.#verdict !== null && now < this.#verdict.validUntil) this.#scheduleExpiry(this.#verdict, now);
    else this.#options.onExpiry();
  }
}
