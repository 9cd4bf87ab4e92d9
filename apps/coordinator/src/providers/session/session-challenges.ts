/** The challenges of one connection and what came of them: the newest answer that was right, and whether the latest one was. */
import type { Posture } from '@inference/protocol';
import type { Identity } from './admission.js';
import type { ChallengeTranscript } from './challenge-answer.js';
import { PeriodicChallenge } from './periodic-challenge.js';
import type { Refusal } from './refusal.js';
import type { SessionTimings } from './session-timings.js';

export interface SessionChallengesOptions {
  readonly identity: Identity;
  readonly timings: SessionTimings;
  readonly now: () => number;
  /** What registration answered. */
  readonly first: ChallengeTranscript;
  readonly send: (nonce: string) => void;
  readonly passed: (posture: Posture) => void;
  readonly missed: (inARow: number) => void;
  readonly late: () => void;
  readonly failed: (refusal: Refusal) => void;
}

export class SessionChallenges {
  readonly #challenges: PeriodicChallenge;
  #transcript: ChallengeTranscript;
  #latestPassed = true;

  constructor(options: SessionChallengesOptions) {
    const { identity, timings, now, first } = options;
    this.#transcript = first;
    this.#challenges = new PeriodicChallenge({
      identity,
      sessionId: first.sessionId,
      firstNonce: first.nonce,
      timings,
      now,
      events: {
        send: options.send,
        passed: (posture, transcript) => {
          this.#transcript = transcript;
          this.#latestPassed = true;
          options.passed(posture);
        },
        missed: (inARow) => {
          this.#latestPassed = false;
          options.missed(inARow);
        },
        late: options.late,
        failed: (refusal) => {
          this.#latestPassed = false;
          options.failed(refusal);
        },
      },
    });
  }

  /** The newest challenge that was answered rightly. */
  get transcript(): ChallengeTranscript {
    return this.#transcript;
  }

  /** The newest challenge was answered rightly and in time. */
  get latestPassed(): boolean {
    return this.#latestPassed;
  }

  answer(statement: Parameters<PeriodicChallenge['answer']>[0]): void {
    this.#challenges.answer(statement);
  }

  stop(): void {
    this.#challenges.stop();
  }
}
