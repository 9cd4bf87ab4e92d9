/** What goes into a provider's session, what is known of it, and how it ends. */
import type { Hardware, ModelOffer, RejectionCode, RejectionReason, TrustLevel } from '@inference/protocol';
import type { TrustAnchor } from '../verification/chain/trust-anchor.js';
import type { EnrolmentService } from './enrolment-requests.js';
import type { LinkService } from './link-requests.js';
import type { EvaluatedOffers } from './model-offers.js';
import type { Identity } from './registration/admission.js';

export interface SessionOptions {
  readonly timings: SessionTimings;
  readonly allowSimulatedEnclave: boolean;
  /** Providers below it get no jobs. Left out: `self_signed`. */
  readonly minTrustLevel?: TrustLevel;
  /** Where managed-device chains must end. */
  readonly anchor: TrustAnchor;
  readonly now: () => number;
  /** Answers requests for device-management enrolments. */
  readonly enrolments: EnrolmentService;
  /** Knows the tokens of owners. Left out: there are none. */
  readonly links?: LinkService;
  /** Which of a provider's models are taken. Left out: all of them. */
  readonly evaluateOffers?: (offers: readonly ModelOffer[]) => EvaluatedOffers;
}

export type SessionEnd =
  | { readonly by: 'coordinator'; readonly code: RejectionCode; readonly reason: RejectionReason | null; readonly message: string }
  | { readonly by: 'provider' };

/** Messages that were tolerated, for the operator. */
export interface SessionCounters {
  unknownMessages: number;
  /** Messages and frames for jobs that are not running here; a few are normal after a cancel. */
  strayMessages: number;
  passedChallenges: number;
  missedChallenges: number;
  /** Answers that came after their time. */
  lateAnswers: number;
}

/** What is known once a provider has registered. */
export interface Registration {
  readonly identity: Identity;
  /** As it is taken: what cannot be is brought to what can. */
  readonly hardware: Hardware;
  /** Names of what was told and not taken as it was. */
  readonly adjusted: readonly string[];
  /** GiB; the attestation statement holds what was told. */
  readonly memoryGb: number;
  readonly slots: number;
  /** Version of the receipts that it signs. */
  readonly receiptVersion: 1 | 2;
  readonly agentName: string;
  readonly agentVersion: string;
  readonly registeredAt: number;
}

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
