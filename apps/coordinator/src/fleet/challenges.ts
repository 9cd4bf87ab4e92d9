/**
 * The periodic challenge of one connection: a fresh nonce every few minutes, a short time to answer, three misses in a row
 * and the provider is out. A nonce counts once; an answer that comes after its time is ignored, any other wrong one is fatal.
 */
import { randomBytes } from 'node:crypto';
import type { Posture, SignedStatement } from '@inference/protocol';
import { checkChallengeAnswer, type Identity, Refusal } from './admission.js';
import { type FleetTimings, MAX_MISSED_CHALLENGES } from './timings.js';

export interface ChallengeEvents {
  send(nonce: string): void;
  passed(posture: Posture): void;
  missed(inARow: number): void;
  failed(refusal: Refusal): void;
}

/** base64 of 32 random bytes. */
export function newNonce(): string {
  return randomBytes(32).toString('base64');
}

/** Late answers are recognised this many misses back. */
const MOST_EXPIRED = 8;

export class Challenges {
  readonly #identity: Identity;
  readonly #sessionId: string;
  readonly #timings: FleetTimings;
  readonly #now: () => number;
  readonly #events: ChallengeEvents;
  #timer: NodeJS.Timeout;
  #outstanding: string | null = null;
  #missed = 0;
  /** Nonces whose time ran out; an honest but late answer to one of them arrives eventually. */
  readonly #expired = new Set<string>();

  constructor(options: { identity: Identity; sessionId: string; timings: FleetTimings; now: () => number; events: ChallengeEvents }) {
    this.#identity = options.identity;
    this.#sessionId = options.sessionId;
    this.#timings = options.timings;
    this.#now = options.now;
    this.#events = options.events;
    this.#timer = setTimeout(() => this.#ask(), options.timings.challengeIntervalMs);
  }

  /** Takes in an answer. Exactly one of the events follows, or none when the answer is late. */
  answer(statement: SignedStatement): void {
    try {
      const posture = this.#check(statement);
      if (posture === null) return;
      clearTimeout(this.#timer);
      this.#outstanding = null;
      this.#missed = 0;
      this.#timer = setTimeout(() => this.#ask(), this.#timings.challengeIntervalMs);
      this.#events.passed(posture);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.stop();
      this.#events.failed(error);
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #check(statement: SignedStatement): Posture | null {
    const rules = { now: this.#now(), sessionId: this.#sessionId };
    for (const nonce of this.#expired) {
      try {
        checkChallengeAnswer(statement, this.#identity, { ...rules, nonce });
        return null;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
      }
    }
    if (this.#outstanding === null) throw new Refusal('challenge_failed', 'no challenge is waiting for an answer');
    return checkChallengeAnswer(statement, this.#identity, { ...rules, nonce: this.#outstanding });
  }

  #ask(): void {
    const nonce = newNonce();
    this.#outstanding = nonce;
    this.#timer = setTimeout(() => this.#miss(nonce), this.#timings.challengeAnswerMs);
    this.#events.send(nonce);
  }

  #miss(nonce: string): void {
    this.#expired.add(nonce);
    const [oldest] = this.#expired;
    if (this.#expired.size > MOST_EXPIRED && oldest !== undefined) this.#expired.delete(oldest);
    this.#outstanding = null;
    this.#missed++;
    if (this.#missed >= MAX_MISSED_CHALLENGES) {
      this.#events.failed(new Refusal('challenge_failed', `${this.#missed} challenges in a row were not answered`));
      return;
    }
    this.#events.missed(this.#missed);
    this.#ask();
  }
}
