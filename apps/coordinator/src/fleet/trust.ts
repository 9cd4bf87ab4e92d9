/**
 * What a provider is worth, computed from the evidence at hand by one pure function. Nothing else sets a trust level, and a
 * level is lost the moment its evidence is (design: identity, trust, attestation).
 */
import type { Posture } from '@inference/protocol';

export type TrustLevel = 'self_signed' | 'hardware';

export interface TrustEvidence {
  /** The attestation statement was verified by its own key, on this connection. */
  readonly attestationVerified: boolean;
  /** Posture in the newest verified statement. */
  readonly posture: Posture;
  /** A simulated enclave that the operator's setting admits. */
  readonly admittedSimulation: boolean;
  /** When the newest challenge of this connection was answered, in milliseconds; null when none was. */
  readonly challengePassedAt: number | null;
}

export type TrustVerdict = { readonly level: TrustLevel; readonly reason: null } | { readonly level: null; readonly reason: TrustGap };
export type TrustGap = 'attestation_unverified' | 'challenge_unanswered' | 'challenge_stale' | PostureGap;
export type PostureGap = 'no_secure_enclave' | 'sip_disabled' | 'secure_boot_disabled';

/**
 * The trust level that evidence supports, or what is missing. `hardware` also needs the device-management cross-check and the
 * maker's certificate chain; this coordinator gathers neither, so no evidence leads to it.
 */
export function trustLevel(evidence: TrustEvidence, now: number, maxChallengeAgeMs: number): TrustVerdict {
  if (!evidence.attestationVerified) return { level: null, reason: 'attestation_unverified' };
  const gap = postureGap(evidence.posture, evidence.admittedSimulation);
  if (gap !== null) return { level: null, reason: gap };
  if (evidence.challengePassedAt === null) return { level: null, reason: 'challenge_unanswered' };
  if (now - evidence.challengePassedAt > maxChallengeAgeMs) return { level: null, reason: 'challenge_stale' };
  return { level: 'self_signed', reason: null };
}

/** The first protection that is off, or null. A simulation has no enclave to show; the rest is asked of it as of others. */
export function postureGap(posture: Posture, admittedSimulation: boolean): PostureGap | null {
  if (!posture.secure_enclave && !admittedSimulation) return 'no_secure_enclave';
  if (!posture.sip_enabled) return 'sip_disabled';
  if (!posture.secure_boot_enabled) return 'secure_boot_disabled';
  return null;
}
