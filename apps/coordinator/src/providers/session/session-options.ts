/** Types of a provider session: options, timeouts, registration, counters and end. */
import type { Hardware, ModelOffer, Register, TrustLevel } from '@inference/protocol';
import type { TrustAnchor } from '../verification/chain/trust-anchor.js';
import type { EnrolmentService } from './enrolment-requests.js';
import type { LinkService } from './link-requests.js';
import type { EvaluatedOffers } from './model-offers.js';
import type { Rejection } from './provider-socket.js';
import type { Identity } from './registration/admission.js';

export interface SessionOptions {
  readonly timings: SessionTimings;
  readonly allowSimulatedEnclave: boolean;
  /** Providers below this trust level get no jobs. Default: `self_signed`. */
  readonly minTrustLevel?: TrustLevel;
  readonly anchor: TrustAnchor;
  readonly now: () => number;
  readonly enrolments: EnrolmentService;
  /** Verifies machine tokens, which link providers to accounts. Default: linking is disabled. */
  readonly links?: LinkService;
  /** Interval at which providers ping this coordinator. Set in a cluster, where another can take over. Default: the provider's choice. */
  readonly heartbeatMs?: number;
  /** Accepts or rejects model offers. Default: accepts all. */
  readonly evaluateOffers?: (offers: readonly ModelOffer[]) => EvaluatedOffers;
}

/** `provider`: the provider closed the connection, or was silent, or the connection broke. */
export type SessionEnd = ({ readonly by: 'coordinator' } & Rejection) | { readonly by: 'provider' };

/** Counts of challenges and of unusual messages, for operators. A single unusual message does not end the session. */
export interface SessionCounters {
  unknownMessages: number;
  /** Messages and frames for unknown jobs. A few are normal after a cancel. */
  strayMessages: number;
  passedChallenges: number;
  missedChallenges: number;
  /** Challenge answers after their timeout. */
  lateAnswers: number;
}

/** Facts of a registered provider, constant for the connection. */
export interface Registration {
  readonly identity: Identity;
  /** Reported hardware, with implausible values lowered (`registration/plausible-hardware.ts`). */
  readonly hardware: Hardware;
  readonly adjusted: readonly string[];
  /** Memory in GiB, lowered if implausible. The attestation contains the reported value. */
  readonly memoryGb: number;
  /** Maximum concurrent jobs, as reported. */
  readonly slots: number;
  /** Version of the receipts that the provider signs in plain mode. */
  readonly receiptVersion: 1 | 2;
  /** Supported versions of the end-to-end protocol. */
  readonly e2eVersions: readonly number[];
  /** Whether the agent accepts jobs for a fallback model, which the body names after the requested one. */
  readonly servesFallbackModels: boolean;
  /** Whether the agent can generate several choices (`n` above 1). */
  readonly servesChoices: boolean;
  /** Whether the agent supports and permits owner commands. Absent from old agents. */
  readonly remoteControl?: Register['remote_control'];
  readonly agentName: string;
  readonly agentVersion: string;
  readonly registeredAt: number;
}

export interface SessionTimings {
  /** Maximum time from the opened socket to `hello`, and from `welcome` to `register`. */
  readonly handshakeMs: number;
  readonly challengeIntervalMs: number;
  readonly challengeAnswerMs: number;
  /** Interval of pings to a provider, and of liveness checks. */
  readonly pingMs: number;
  /** Silence, measured in unanswered pings, after which a provider is considered dead. */
  readonly silenceMs: number;
  /** First and maximum backoff after a provider reported full slots. */
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  /** Time after which a cancelled job frees its slot without the provider's confirmation. */
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

/** Interval at which the providers of a cluster ping their coordinator. */
export const CLUSTER_HEARTBEAT_MS = 2000;

/** Number of consecutive unanswered challenges that ends the session. */
export const MAX_MISSED_CHALLENGES = 3;

/**
 * Maximum age of the newest passed challenge for trust, in milliseconds: one interval, the time in which missed challenges end the
 * session, and one answer time as a margin.
 */
export function maxChallengeAge(timings: SessionTimings): number {
  return timings.challengeIntervalMs + (MAX_MISSED_CHALLENGES + 1) * timings.challengeAnswerMs;
}
