/** Deadlines and periods of provider sessions, in milliseconds. */
export interface SessionTimings {
  /** From the opened socket to `hello`, and from `welcome` to `register`. */
  readonly handshakeMs: number;
  readonly challengeIntervalMs: number;
  readonly challengeAnswerMs: number;
  readonly pingMs: number;
  /** Silence after which a peer counts as gone, in whole pings. With two more of them, a dead one is noticed within 30 s. */
  readonly silenceMs: number;
  /** For how long a provider that said it is full is left alone the first time, and at most. */
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  /** How long a cancelled job keeps its slot when the provider never confirms. */
  readonly cancelConfirmMs: number;
}

export const SESSION_TIMINGS: SessionTimings = {
  handshakeMs: 30_000,
  challengeIntervalMs: 5 * 60_000,
  challengeAnswerMs: 30_000,
  pingMs: 7000,
  silenceMs: 20_000,
  backoffMs: 1000,
  maxBackoffMs: 30_000,
  cancelConfirmMs: 30_000,
};

/** Unanswered challenges in a row after which a provider is out. */
export const MAX_MISSED_CHALLENGES = 3;

/** Oldest passed challenge that trust may rest on: one period, and the misses that are forgiven. */
export function maxChallengeAge(timings: SessionTimings): number {
  return timings.challengeIntervalMs + (MAX_MISSED_CHALLENGES + 1) * timings.challengeAnswerMs;
}
