/** Opens and checks the answer to one challenge: signed by this enclave key, for this session, to this nonce, now. */
import { type ChallengeAnswer, CLOCK_TOLERANCE_MS, openChallengeAnswer, type Posture, type SignedStatement } from '@inference/protocol';
import { verifyP256 } from '@inference/protocol/crypto';
import { postureGap } from '../../verification/trust-policy.js';
import { openOrRefuse, Refusal } from '../refusal.js';
import type { Identity } from './admission.js';

/** A correct answer, with all evidence for outsiders. */
export interface ChallengeTranscript {
  /** The statement as received. */
  readonly statement: SignedStatement;
  readonly nonce: string;
  readonly sessionId: string;
  /** Time of acceptance, in milliseconds. */
  readonly answeredAt: number;
}

/** Opens an answer by this key for this session, for any nonce. Throws {@link Refusal}. */
export function openAnswer(statement: SignedStatement, identity: Identity, sessionId: string): ChallengeAnswer {
  const { value } = openOrRefuse('challenge', () => openChallengeAnswer(statement, identity.publicKey, verifyP256));
  if (value.session_id !== sessionId) {
    throw new Refusal('challenge_failed', 'the answer is for another session', 'challenge_other_session');
  }
  return value;
}

/** Returns the posture of an opened answer, if its time is now and all protections are on. Throws {@link Refusal}. */
export function checkAnswer(answer: ChallengeAnswer, identity: Identity, now: number): Posture {
  if (Math.abs(answer.issued_at - now) > CLOCK_TOLERANCE_MS) {
    throw new Refusal('challenge_failed', clockOffsetText(answer.issued_at, now), 'challenge_clock');
  }
  requireSafePosture(answer, identity);
  return answer.posture;
}

/** Checks the posture alone; also applied to late answers. Throws {@link Refusal}. */
export function requireSafePosture({ posture }: ChallengeAnswer, identity: Identity): void {
  if (posture.secure_enclave !== identity.attestation.posture.secure_enclave) {
    throw new Refusal('challenge_failed', 'attestation and challenge answer disagree on the enclave', 'challenge_contradiction');
  }
  requirePosture(posture, identity.simulated);
}

/** Throws {@link Refusal} with the first protection that is off. */
export function requirePosture(posture: Posture, simulated: boolean): void {
  const gap = postureGap(posture, simulated);
  if (gap !== null) throw new Refusal('posture_insufficient', `the machine is not protected: ${gap}`, gap);
}

export function clockOffsetText(theirs: number, ours: number): string {
  return `the statement's time is ${Math.round(Math.abs(theirs - ours) / 1000)} s away from this coordinator's clock`;
}
