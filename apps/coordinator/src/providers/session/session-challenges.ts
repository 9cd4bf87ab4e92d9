/**
 * `SessionChallenges` sends challenges to a provider periodically, and at once after a missed one. It stores the newest correct answer.
 *
 * A challenge is a nonce that the provider signs, together with the state of its protections (posture). Part of `SessionEvidence`.
 */

import { randomBytes } from 'node:crypto';
import type { Posture, SignedStatement } from '@inference/protocol';
import { Refusal } from './refusal.js';
import type { Identity } from './registration/admission.js';
import { type ChallengeTranscript, checkAnswer, openAnswer, requireSafePosture } from './registration/challenge-answer.js';
import { MAX_MISSED_CHALLENGES, type SessionTimings } from './session-options.js';

interface ChallengeEvents {
  send(nonce: string): void;
  passed(posture: Posture, transcript: ChallengeTranscript): void;
  missed(inARow: number): void;
  /** A correct answer arrived after its timeout. */
  late(): void;
  failed(refusal: Refusal): void;
}

/** Base64 of 32 random bytes. */
export function newNonce(): string {
  return randomBytes(32).toString('base64');
}

/** Maximum nonces per list. */
const MAX_NONCES = 32;

class PeriodicChallenge {
  readonly #identity: Identity;
  readonly #sessionId: string;
  readonly #timings: SessionTimings;
  readonly #now: () => number;
  readonly #events: ChallengeEvents;
  #timer: NodeJS.Timeout;
  #outstanding: string | null = null;
  #missed = 0;
  /** Nonces of challenges that timed out. A slow but correct provider answers each of them once. */
  readonly #expired: string[] = [];
  /** Nonces of answered challenges. A second answer is a replay. */
  readonly #answered: string[];

  constructor(options: {
    identity: Identity;
    sessionId: string;
    /** Nonce that was answered during registration. */
    firstNonce: string;
    timings: SessionTimings;
    now: () => number;
    events: ChallengeEvents;
  }) {
    this.#identity = options.identity;
    this.#sessionId = options.sessionId;
    this.#answered = [options.firstNonce];
    this.#timings = options.timings;
    this.#now = options.now;
    this.#events = options.events;
    this.#timer = setTimeout(() => this.#ask(), options.timings.challengeIntervalMs);
  }

  /** Checks an answer. Calls exactly one of `passed`, `late` and `failed`. */
  answer(statement: SignedStatement): void {
    try {
      const answer = openAnswer(statement, this.#identity, this.#sessionId);
      if (answer.nonce === this.#outstanding) {
        const now = this.#now();
        const posture = checkAnswer(answer, this.#identity, now);
        this.#pass(posture, { statement, nonce: answer.nonce, sessionId: this.#sessionId, answeredAt: now });
        return;
      }
      const expired = this.#expired.indexOf(answer.nonce);
      if (expired < 0) throw this.#wrongNonce(answer.nonce);
      this.#expired.splice(expired, 1);
      remember(this.#answered, answer.nonce);
      requireSafePosture(answer, this.#identity);
      this.#events.late();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.stop();
      this.#events.failed(error);
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#outstanding = null;
  }

  #pass(posture: Posture, transcript: ChallengeTranscript): void {
    clearTimeout(this.#timer);
    remember(this.#answered, transcript.nonce);
    this.#outstanding = null;
    this.#missed = 0;
    this.#timer = setTimeout(() => this.#ask(), this.#timings.challengeIntervalMs);
    this.#events.passed(posture, transcript);
  }

  #wrongNonce(nonce: string): Refusal {
    if (this.#answered.includes(nonce)) return new Refusal('challenge_failed', 'this challenge was answered before', 'challenge_replayed');
    return new Refusal('challenge_failed', 'the answer is to a challenge that is not open', 'challenge_unknown');
  }

  #ask(): void {
    const nonce = newNonce();
    this.#outstanding = nonce;
    this.#timer = setTimeout(() => this.#recordMiss(nonce), this.#timings.challengeAnswerMs);
    this.#events.send(nonce);
  }

  #recordMiss(nonce: string): void {
    remember(this.#expired, nonce);
    this.#outstanding = null;
    this.#missed++;
    if (this.#missed >= MAX_MISSED_CHALLENGES) {
      const message = `${this.#missed} challenges in a row were not answered`;
      this.#events.failed(new Refusal('challenge_failed', message, 'challenge_unanswered'));
      return;
    }
    this.#events.missed(this.#missed);
    this.#ask();
  }
}

function remember(nonces: string[], nonce: string): void {
  nonces.push(nonce);
  if (nonces.length > MAX_NONCES) nonces.shift();
}

interface SessionChallengesOptions {
  readonly identity: Identity;
  readonly timings: SessionTimings;
  readonly now: () => number;
  /** The challenge that was answered during registration. */
  readonly firstChallenge: ChallengeTranscript;
  readonly send: (nonce: string) => void;
  readonly passed: (posture: Posture) => void;
  readonly missed: (inARow: number) => void;
  readonly late: () => void;
  readonly failed: (refusal: Refusal) => void;
}

export class SessionChallenges {
  readonly #challenges: PeriodicChallenge;
  #transcript: ChallengeTranscript;
  #hasPassedLatest = true;

  constructor(options: SessionChallengesOptions) {
    const { identity, timings, now, firstChallenge } = options;
    this.#transcript = firstChallenge;
    this.#challenges = new PeriodicChallenge({
      identity,
      sessionId: firstChallenge.sessionId,
      firstNonce: firstChallenge.nonce,
      timings,
      now,
      events: {
        send: options.send,
        passed: (posture, transcript) => {
          this.#transcript = transcript;
          this.#hasPassedLatest = true;
          options.passed(posture);
        },
        missed: (inARow) => {
          this.#hasPassedLatest = false;
          options.missed(inARow);
        },
        late: options.late,
        failed: (refusal) => {
          this.#hasPassedLatest = false;
          options.failed(refusal);
        },
      },
    });
  }

  /** Newest correctly answered challenge. */
  get transcript(): ChallengeTranscript {
    return this.#transcript;
  }

  /** Whether the newest challenge that is not open any more was answered correctly and in time. */
  get latestPassed(): boolean {
    return this.#hasPassedLatest;
  }

  answer(statement: Parameters<PeriodicChallenge['answer']>[0]): void {
    this.#challenges.answer(statement);
  }

  stop(): void {
    this.#challenges.stop();
  }
}
