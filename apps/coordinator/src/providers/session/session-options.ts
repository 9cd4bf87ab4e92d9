/** Types of a provider's session: options, time limits, registration, counters and end. */
import type { Hardware, ModelOffer, Register, RejectionCode, RejectionReason, TrustLevel } from '@inference/protocol';
import type { TrustAnchor } from '../verification/chain/trust-anchor.js';
import type { EnrolmentService } from './enrolment-requests.js';
import type { LinkService } from './link-requests.js';
import type { EvaluatedOffers } from './model-offers.js';
import type { Identity } from './registration/admission.js';

export interface SessionOptions {
  readonly timings: SessionTimings;
  readonly allowSimulatedEnclave: boolean;
  /** Providers below this level get no jobs. Default: `self_signed`. */
  readonly minTrustLevel?: TrustLevel;
  /** Where managed-device chains must end. */
  readonly anchor: TrustAnchor;
  readonly now: () => number;
  /** Answers requests for device-management enrolments. */
  readonly enrolments: EnrolmentService;
  /** Validates link tokens of owners. Default: no links. */
  readonly links?: LinkService;
  /** Interval of the provider's pings while other coordinators can take over. Default: the provider's own interval. */
  readonly heartbeatMs?: number;
  /** Accepts or rejects model offers. Default: all are accepted. */
  readonly evaluateOffers?: (offers: readonly ModelOffer[]) => EvaluatedOffers;
}

export type SessionEnd =
  | { readonly by: 'coordinator'; readonly code: RejectionCode; readonly reason: RejectionReason | null; readonly message: string }
  | { readonly by: 'provider' };

/** Counts of tolerated messages, for operators. */
export interface SessionCounters {
  unknownMessages: number;
  /** Messages and frames for jobs that do not run here; a few are normal after a cancel. */
  strayMessages: number;
  passedChallenges: number;
  missedChallenges: number;
  /** Answers after their deadline. */
  lateAnswers: number;
}

/** Facts of a registered provider, fixed for the connection. */
export interface Registration {
  readonly identity: Identity;
  /** Implausible values are lowered (`registration/plausible-hardware.ts`). */
  readonly hardware: Hardware;
  /** Names of reported values that were lowered. */
  readonly adjusted: readonly string[];
  /** GiB, lowered if implausible; the attestation statement has the reported value. */
  readonly memoryGb: number;
  readonly slots: number;
  /** Version of the receipts that the provider signs. */
  readonly receiptVersion: 1 | 2;
  /** Supported versions of the end-to-end profile. */
  readonly e2eVersions: readonly number[];
  /** The agent serves jobs of a model that the body names as a fallback. */
  readonly servesFallbackModels: boolean;
  /** The agent serves requests for several choices. */
  readonly servesChoices: boolean;
  /** Whether the agent supports owner commands, and the owner permits them. Absent: an older agent. */
  readonly remoteControl?: Register['remote_control'];
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
  /** Silence after which a peer counts as dead, measured by unanswered pings. A dead peer is noticed within 30 s. */
  readonly silenceMs: number;
  /** First and longest pause after a provider reported full slots. */
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  /** Time after which a cancelled job frees its slot without confirmation. */
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

/** Heartbeat of providers in a cluster, in milliseconds: providers leave a silent coordinator within two heartbeats. */
export const CLUSTER_HEARTBEAT_MS = 2000;

/** Consecutive unanswered challenges that end the session. */
export const MAX_MISSED_CHALLENGES = 3;

/** Maximum age of a passed challenge as support of trust: one period plus the tolerated misses. */
export function maxChallengeAge(timings: SessionTimings): number {
  return timings.challengeIntervalMs + (MAX_MISSED_CHALLENGES + 1) * timings.challengeAnswerMs;
}
