/** `evaluateTrust`, a pure function, computes a provider's trust level from its evidence. No other code derives a level from evidence. */
import {
  type ChainRejection,
  HARDWARE_PARTS,
  type PartState,
  type Posture,
  SELF_SIGNED_PARTS,
  type TrustLevel,
  type TrustPartName,
  type TrustReason,
} from '@inference/protocol';
import type { TrustEvidence } from './evidence.js';

export interface TrustLimits {
  readonly maxChallengeAgeMs: number;
  readonly maxManagementAgeMs: number;
}

/** Maximum age of an attestation on arrival. Challenges later report the current posture (state of the protections). */
export const MAX_ATTESTATION_AGE_MS = 24 * 60 * 60_000;
export const MAX_MANAGEMENT_AGE_MS = 24 * 60 * 60_000;

/** One requirement of trust, such as an answered challenge or a valid certificate chain, and whether the evidence meets it. */
export interface TrustPart {
  readonly name: TrustPartName;
  readonly state: PartState;
  /** Null if the state is `ok`, except for `challenge_missed`, which is only a warning. */
  readonly reason: TrustReason | null;
  /** Cause of the chain's rejection, for `chain_refused`, `chain_stale` and `binding_of_another_nonce`. Otherwise null. */
  readonly detail: ChainRejection | null;
}

export interface TrustVerdict {
  readonly level: TrustLevel | null;
  /** All parts: first `SELF_SIGNED_PARTS`, then `HARDWARE_PARTS`. */
  readonly parts: readonly TrustPart[];
  /** Earliest time at which the verdict may change without new evidence, in milliseconds; Infinity: never. */
  readonly validUntil: number;
}

export function evaluateTrust(evidence: TrustEvidence, now: number, limits: TrustLimits): TrustVerdict {
  const evaluator = new TrustEvaluator(evidence, now, limits);
  const parts = evaluator.parts();
  const holds = (names: readonly TrustPartName[]): boolean =>
    names.every((name) => parts.find((part) => part.name === name)?.state === 'ok');
  const level = holds(SELF_SIGNED_PARTS) ? (holds(HARDWARE_PARTS) ? 'hardware' : 'self_signed') : null;
  return { level, parts, validUntil: evaluator.validUntil };
}

/** The first reason why the evidence does not support `self_signed`, or null. */
export function firstSelfSignedGap(verdict: TrustVerdict): TrustReason | null {
  const names: readonly TrustPartName[] = SELF_SIGNED_PARTS;
  return verdict.parts.find(({ name, state }) => state !== 'ok' && names.includes(name))?.reason ?? null;
}

export function isPartOk(verdict: TrustVerdict, name: TrustPartName): boolean {
  return verdict.parts.some((part) => part.name === name && part.state === 'ok');
}

type PostureGap = 'no_secure_enclave' | 'sip_disabled' | 'secure_boot_disabled';

/** The first protection that is off, or null. Admitted simulated enclaves need all protections except the enclave itself. */
export function postureGap(posture: Posture, admittedSimulation: boolean): PostureGap | null {
  if (!posture.secure_enclave && !admittedSimulation) return 'no_secure_enclave';
  if (!posture.sip_enabled) return 'sip_disabled';
  if (!posture.secure_boot_enabled) return 'secure_boot_disabled';
  return null;
}

type Finding = Omit<TrustPart, 'name'>;

const OK: Finding = { state: 'ok', reason: null, detail: null };
const missing = (reason: TrustReason): Finding => ({ state: 'missing', reason, detail: null });
const stale = (reason: TrustReason, detail: ChainRejection | null = null): Finding => ({ state: 'stale', reason, detail });
const failed = (reason: TrustReason, detail: ChainRejection | null = null): Finding => ({ state: 'failed', reason, detail });

/** Rejections that come from time, and that a new certificate resolves. */
const EXPIRY_REJECTIONS: ReadonlySet<ChainRejection> = new Set(['leaf_expired', 'issuer_expired', 'too_old']);

class TrustEvaluator {
  validUntil = Number.POSITIVE_INFINITY;

  constructor(
    private readonly evidence: TrustEvidence,
    private readonly now: number,
    private readonly limits: TrustLimits,
  ) {}

  parts(): TrustPart[] {
    const findings: Record<TrustPartName, Finding> = {
      attestation: this.#attestation(),
      enclave: this.#enclave(),
      posture: this.#posture(),
      challenge: this.#challenge(),
      sealing_key: this.#sealingKey(),
      device_management: this.#ofDevice(() => this.#management()),
      device_identity: this.#ofDevice(() => this.#identity()),
      device_chain: this.#ofDevice(() => this.#chain()),
      key_binding: this.#ofDevice(() => this.#binding()),
    };
    return [...SELF_SIGNED_PARTS, ...HARDWARE_PARTS].map((name) => ({ name, ...findings[name] }));
  }

  #attestation(): Finding {
    const { attestation } = this.evidence;
    if (attestation === null) return missing('attestation_missing');
    if (!this.#isOfThisKey(attestation)) return failed('evidence_of_another_key');
    return attestation.receivedAt - attestation.issuedAt > MAX_ATTESTATION_AGE_MS ? stale('attestation_stale') : OK;
  }

  #enclave(): Finding {
    const { attestation, challenge, allowSimulatedEnclave } = this.evidence;
    if (attestation === null) return missing('attestation_missing');
    const admitted = attestation.simulated && allowSimulatedEnclave;
    const seen = [attestation.posture, ...(challenge === null ? [] : [challenge.posture])];
    const real = !attestation.simulated && seen.every((posture) => posture.secure_enclave);
    return real || admitted ? OK : failed('no_secure_enclave');
  }

  #posture(): Finding {
    const { attestation, challenge } = this.evidence;
    if (attestation === null) return missing('attestation_missing');
    // Both postures must be good. A later one does not excuse a gap in the attestation. The part `enclave` checks the enclave.
    for (const posture of [attestation.posture, challenge?.posture ?? attestation.posture]) {
      const gap = postureGap(posture, true);
      if (gap !== null) return failed(gap);
    }
    return OK;
  }

  #challenge(): Finding {
    const { challenge } = this.evidence;
    if (challenge === null) return missing('challenge_unanswered');
    if (!this.#isOfThisKey(challenge)) return failed('evidence_of_another_key');
    if (!this.#isValidUntil(challenge.passedAt + this.limits.maxChallengeAgeMs)) return stale('challenge_stale');
    return challenge.missedSince > 0 ? { ...OK, reason: 'challenge_missed' } : OK;
  }

  #sealingKey(): Finding {
    const { sealingKey } = this.evidence;
    if (sealingKey === null) return missing('sealing_key_missing');
    if (!this.#isOfThisKey(sealingKey)) return failed('evidence_of_another_key');
    return this.#isValidUntil(sealingKey.notAfter) ? OK : stale('sealing_key_expired');
  }

  /** Compares the protections reported by device management with the machine's own statements. */
  #management(): Finding {
    const { device, attestation } = this.evidence;
    if (device === null || device.enrolledAt === null) return missing('not_enrolled');
    const { security } = device;
    if (security === null) return missing('security_info_missing');
    if (!security.sipEnabled) return failed('managed_sip_disabled');
    if (security.secureBootLevel !== 'full') return failed('managed_secure_boot_not_full');
    if (!security.diskEncryptionEnabled) return failed('managed_disk_encryption_off');
    if (attestation?.posture.authenticated_root_enabled && security.authenticatedRootEnabled === false) {
      return failed('managed_root_volume_unsealed');
    }
    return this.#isValidUntil(security.receivedAt + this.limits.maxManagementAgeMs) ? OK : stale('security_info_stale');
  }

  /** Requires that attestation, device management and certificate name the same machine. */
  #identity(): Finding {
    const { device, attestation } = this.evidence;
    const information = device?.information ?? null;
    if (information === null) return missing('device_information_missing');
    if (information.provisioningUdid === null || information.softwareUpdateDeviceId === null)
      return missing('device_information_incomplete');
    const certified = device?.chain?.kind === 'verified' ? device.chain.facts.serialNumber : information.serialNumber;
    if (attestation?.serialNumber !== information.serialNumber || certified !== information.serialNumber)
      return failed('serial_number_differs');
    return OK;
  }

  #chain(): Finding {
    const { device, attestation } = this.evidence;
    const chain = device?.chain ?? null;
    if (chain === null) return missing('chain_missing');
    switch (chain.kind) {
      case 'unbound':
        return failed('binding_of_another_key');
      case 'refused':
        if (chain.code === 'freshness_mismatch') return stale('binding_of_another_nonce', chain.code);
        return EXPIRY_REJECTIONS.has(chain.code) ? stale('chain_stale', chain.code) : failed('chain_refused', chain.code);
      case 'verified':
        if (chain.simulatedAnchor !== attestation?.simulated) return failed('chain_of_another_world');
        return this.#isValidUntil(chain.facts.goodUntil) ? OK : stale('chain_stale', 'too_old');
      default:
        return chain satisfies never;
    }
  }

  #binding(): Finding {
    const chain = this.evidence.device?.chain ?? null;
    if (chain === null) return missing('binding_missing');
    switch (chain.kind) {
      case 'unbound':
        return failed('binding_of_another_key');
      case 'refused':
        // For about a week, a device may return a cached certificate that contains an earlier nonce.
        return chain.code === 'freshness_mismatch' ? stale('binding_of_another_nonce', chain.code) : missing('binding_missing');
      case 'verified':
        return OK;
      default:
        return chain satisfies never;
    }
  }

  #ofDevice(evaluate: () => Finding): Finding {
    const { device } = this.evidence;
    return device !== null && !this.#isOfThisKey(device) ? failed('evidence_of_another_key') : evaluate();
  }

  #isOfThisKey({ publicKeySha256 }: { readonly publicKeySha256: string }): boolean {
    return publicKeySha256 === this.evidence.publicKeySha256;
  }

  /** Whether `end` is in the future. If so, the verdict is valid at most until then. */
  #isValidUntil(end: number): boolean {
    if (this.now >= end) return false;
    this.validUntil = Math.min(this.validUntil, end);
    return true;
  }
}
