/** Verifies the answer to a challenge: signature of this enclave key, session, time and posture. Callers compare the nonce. */
import { type ChallengeAnswer, CLOCK_TOLERANCE_MS, openChallengeAnswer, type Posture, type SignedStatement } from '@inference/protocol';
import { verifyP256 } from '@inference/protocol/crypto';
import { postureGap } from '../../verification/trust-policy.js';
import { openOrRefuse, Refusal } from '../refusal.js';
import type { Identity } from './admission.js';

/** A correct answer, with everything that others need to verify it. */
export interface ChallengeTranscript {
  readonly statement: SignedStatement;
  readonly nonce: string;
  readonly sessionId: string;
  /** When the coordinator accepted the answer, in milliseconds since 1970. */
  readonly answeredAt: number;
}

/** Verifies the signature and session of an answer, but not its nonce. Throws {@link Refusal}. */
export function openAnswer(statement: SignedStatement, identity: Identity, sessionId: string): ChallengeAnswer {
  const { value } = openOrRefuse('challenge', () => openChallengeAnswer(statement, identity.publicKey, verifyP256));
  if (value.session_id !== sessionId) {
    throw new Refusal('challenge_failed', 'the answer is for another session', 'challenge_other_session');
  }
  return value;
}

/** Checks the time and posture of an opened answer, and returns the posture. Throws {@link Refusal}. */
export function checkAnswer(answer: ChallengeAnswer, identity: Identity, now: number): Posture {
  if (Math.abs(answer.issued_at - now) > CLOCK_TOLERANCE_MS) {
    throw new Refusal('challenge_failed', clockOffsetText(answer.issued_at, now), 'challenge_clock');
  }
  requireSafePosture(answer, identity);
  return answer.posture;
}

/** Checks only the posture, as for late answers. Throws {@link Refusal}. */
export function requireSafePosture({ posture }: ChallengeAnswer, identity: Identity): void {
  if (posture.secure_enclave !== identity.attestation.posture.secure_enclave) {
    throw new Refusal('challenge_failed', 'attestation and challenge answer disagree on the enclave', 'challenge_contradiction');
  }
  requirePosture(posture, identity.simulated);
}

/** Throws {@link Refusal} for the first protection that is off. */
export function requirePosture(posture: Posture, simulated: boolean): void {
  const gap = postureGap(posture, simulated);
  if (gap !== null) throw new Refusal('posture_insufficient', `the machine is not protected: ${gap}`, gap);
}

export function clockOffsetText(theirs: number, ours: number): string {
  return `the statement's time is ${Math.round(Math.abs(theirs - ours) / 1000)} s away from this coordinator's clock`;
}
