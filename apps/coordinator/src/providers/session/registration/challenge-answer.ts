/** Reading and judging the answer to one challenge: signed by this enclave key, for this session, to this nonce, now. */
import { type ChallengeAnswer, CLOCK_TOLERANCE_MS, openChallengeAnswer, type Posture, type SignedStatement } from '@inference/protocol';
import { verifyP256 } from '@inference/protocol/crypto';
import { postureGap } from '../../verification/trust-policy.js';
import { openOrRefuse, Refusal } from '../refusal.js';
import type { Identity } from './admission.js';

export interface ChallengeRules {
  readonly now: number;
  readonly sessionId: string;
}

/** An answer that was right, with what an outsider needs to check it again. */
export interface ChallengeTranscript {
  /** The statement as it came. */
  readonly statement: SignedStatement;
  readonly nonce: string;
  readonly sessionId: string;
  /** When it was accepted, in milliseconds. */
  readonly answeredAt: number;
}

/** The answer of this key for this session, whatever nonce it names. Throws {@link Refusal}. */
export function openAnswer(statement: SignedStatement, identity: Identity, sessionId: string): ChallengeAnswer {
  const { value } = openOrRefuse('challenge', () => openChallengeAnswer(statement, identity.publicKey, verifyP256));
  if (value.session_id !== sessionId) {
    throw new Refusal('challenge_failed', 'the answer is for another session', 'challenge_other_session');
  }
  return value;
}

/** What an opened answer says, when it is one of now and protections are on. Throws {@link Refusal}. */
export function checkAnswer(answer: ChallengeAnswer, identity: Identity, now: number): Posture {
  if (Math.abs(answer.issued_at - now) > CLOCK_TOLERANCE_MS) {
    throw new Refusal('challenge_failed', clockOffsetText(answer.issued_at, now), 'challenge_clock');
  }
  requireSafePosture(answer, identity);
  return answer.posture;
}

/** The posture alone, which counts in late answers, too. Throws {@link Refusal}. */
export function requireSafePosture({ posture }: ChallengeAnswer, identity: Identity): void {
  if (posture.secure_enclave !== identity.attestation.posture.secure_enclave) {
    throw new Refusal('challenge_failed', 'attestation and challenge answer disagree on the enclave', 'challenge_contradiction');
  }
  requirePosture(posture, identity.simulated);
}

/** Throws {@link Refusal} naming the first protection that is off. */
export function requirePosture(posture: Posture, simulated: boolean): void {
  const gap = postureGap(posture, simulated);
  if (gap !== null) throw new Refusal('posture_insufficient', `the machine is not protected: ${gap}`, gap);
}

export function clockOffsetText(theirs: number, ours: number): string {
  return `the statement's time is ${Math.round(Math.abs(theirs - ours) / 1000)} s away from this coordinator's clock`;
}
