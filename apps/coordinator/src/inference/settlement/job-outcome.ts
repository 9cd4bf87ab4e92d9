/** `JobOutcome` tells how a job ended and on which providers, for routes, log, usage records and statistics. */
import { type ApiError, apiError, type SignedParts } from '@inference/formats';
import type { ProviderId } from '@inference/protocol';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { AttemptPlan } from '../attempt/attempt.js';
import { unknownModel } from '../request/unknown-model.js';
import type { Charge, JobUsage } from './bill.js';
import type { CompletionProblem, VerifiedCounts } from './completion-check.js';

export type JobOutcome =
  | (AttemptSummary & { readonly kind: 'delivered'; readonly billed: Billed })
  | RefusedJob
  | FailedJob
  | ClientDisconnected;

/** A signed refusal of a sealed request, delivered to the client free of charge. */
type RefusedJob = AttemptSummary & { readonly kind: 'refused'; readonly signed: SignedParts; readonly billed: null };

/** The client disconnected. `billed` is the delivered part of its stream, if the provider signed it. */
type ClientDisconnected = AttemptSummary & { readonly kind: 'client_gone'; readonly billed: Billed | null };

export type FailedJob = AttemptSummary & {
  readonly kind: 'failed';
  readonly error: ApiError;
  /** Code for the log. */
  readonly reason: string;
  /** Why verification rejected the last answer, if it did. */
  readonly problem?: CompletionProblem;
};

export interface Billed {
  readonly receipt: VerifiedCounts;
  readonly signed: SignedParts;
  readonly usage: JobUsage;
  readonly charge: Charge;
  /** Null if unknown, for example because a slow client may have slowed the provider down. */
  readonly pace: AnswerPace | null;
}

export interface AnswerPace {
  /** By `performance.now()`. */
  readonly completedAt: number;
  /** Time from the first content to the end, in milliseconds. */
  readonly contentMs: number;
  /** Null if an unknown part of the output was generated before the first content. */
  readonly decodedTokens: number | null;
}

/** Record of one attempt, for the log. */
export interface AttemptRecord {
  readonly providerId: ProviderId;
  /** A `retry` follows a failed attempt, a `hedge` starts because another attempt is late. */
  readonly role: AttemptPlan['role'];
  /** `answered` (verified or not), `overtaken` (by a faster attempt), `stopped`, or the failure's code. */
  readonly outcome: string;
  /** Duration of the attempt. 0 if the attempt could not start. */
  readonly ms: number;
}

export interface AttemptSummary {
  /** Ended attempts with all models of the job, in order of their end. */
  readonly attemptRecords: readonly AttemptRecord[];
  /** Number of attempts with all models of the job, including attempts that could not start. */
  readonly attemptCount: number;
  /** Provider of the deciding attempt, or of the last one, if any. */
  readonly provider: ProviderConnection | null;
  /** Model of that attempt: the requested one or a fallback. */
  readonly model: string | null;
}

export const NO_ATTEMPTS: AttemptSummary = { attemptRecords: [], attemptCount: 0, provider: null, model: null };

export function failed(summary: AttemptSummary, error: ApiError, reason: string): FailedJob {
  return { kind: 'failed', error, reason, ...summary };
}

export function clientDisconnected(summary: AttemptSummary, billed: Billed | null = null): ClientDisconnected {
  return { kind: 'client_gone', billed, ...summary };
}

interface UnservedModel {
  /** Whether a provider will probably serve the model again soon. */
  readonly isExpected: boolean;
  /** Time until the return that a provider announced, if known. */
  readonly returnsInMs: number | null;
  readonly listed: () => readonly string[];
}

/** Maximum `Retry-After`. Providers choose the time of return that they announce, so it may be far away. */
const MAX_RETURN_MS = 24 * 3_600_000;

/** Outcome for a model without a provider: 404 if the model is unknown, otherwise 503. */
export function notServed(model: string, { isExpected, returnsInMs, listed }: UnservedModel): FailedJob {
  if (!isExpected) return failed(NO_ATTEMPTS, unknownModel(model, listed()), 'model_not_found');
  const message = 'No provider serves this model at the moment.';
  const retryAfter = returnsInMs === null || returnsInMs <= 0 ? {} : { retryAfter: Math.min(returnsInMs, MAX_RETURN_MS) / 1000 };
  return failed(NO_ATTEMPTS, apiError('no_provider', { param: 'model', message, ...retryAfter }), 'none_serving');
}
