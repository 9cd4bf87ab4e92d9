/** `JobOutcome` tells how a job ended and on which providers, for routes, log, usage records and statistics. */
import { type ApiError, apiError, type SignedParts } from '@inference/formats';
import type { ProviderId, TrustLevel } from '@inference/protocol';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { AttemptPlan } from '../attempt/attempt.js';
import type { NotPlacedReason } from '../queue/request-queue.js';
import type { JobRequest } from '../request/job-request.js';
import { unknownModel } from '../request/unknown-model.js';
import type { Charge, JobUsage } from './bill.js';
import type { CompletionProblem, VerifiedCounts } from './completion-check.js';
import { NONE_FIT_FOR_IMAGES } from './outcome-policy.js';

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

/** Record of one attempt, for log and metrics. */
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

/** Maximum `Retry-After`, because providers choose the time of return that they announce. */
const MAX_RETURN_MS = 24 * 3_600_000;

export function notServed(model: string, { isExpected, returnsInMs, listed }: UnservedModel): FailedJob {
  if (!isExpected) return failed(NO_ATTEMPTS, unknownModel(model, listed()), 'model_not_found');
  const message = 'No provider serves this model at the moment.';
  const retryAfter = returnsInMs === null || returnsInMs <= 0 ? {} : { retryAfter: Math.min(returnsInMs, MAX_RETURN_MS) / 1000 };
  return failed(NO_ATTEMPTS, apiError('no_provider', { param: 'model', message, ...retryAfter }), 'none_serving');
}

/** Why a job has no slot: a refusal of the queue, or the image offers of all candidates of a sealed request. */
export interface NoSlot {
  readonly kind: 'refused';
  readonly reason: NotPlacedReason | 'unfit_for_images';
  /** Expected wait, if known. */
  readonly retryAfterMs: number | null;
}

interface NotPlacedContext {
  readonly isClientDisconnected: boolean;
  /** Minimum trust level that the client requested. */
  readonly trustFloor: TrustLevel | null;
  readonly trustParam: JobRequest['trustParam'];
  /** How the client restricted the providers: by serial number, by id, as candidates of a sealed request, or by preferences. */
  readonly namedBy: 'serial' | 'id' | 'candidates' | 'preferences';
  /** Error if no provider matches the preferences. */
  readonly nothingMatches: () => ApiError;
  /** Error if the client named providers that cannot read the images. */
  readonly lacksVision: () => ApiError | null;
  readonly summary: AttemptSummary;
  /** Outcome of the last attempt, if any. */
  readonly last: JobOutcome | null;
}

export function notPlaced(
  { reason, retryAfterMs }: NoSlot,
  { isClientDisconnected, trustFloor, trustParam, namedBy, nothingMatches, lacksVision, summary, last }: NotPlacedContext,
): JobOutcome {
  const retryAfter = retryAfterMs === null ? {} : { retryAfter: retryAfterMs / 1000 };
  switch (reason) {
    case 'aborted':
      return isClientDisconnected ? clientDisconnected(summary) : failed(summary, apiError('shutting_down'), 'shutting_down');
    case 'no_vision':
      return last ?? failed(summary, lacksVision() ?? nothingMatches(), reason);
    case 'no_such_serial':
      // After an attempt, the other candidates have disconnected.
      if (last !== null && (namedBy === 'candidates' || namedBy === 'preferences')) return last;
      return failed(summary, namedBy === 'preferences' ? nothingMatches() : providerNotAvailable(namedBy), reason);
    case 'queue_full':
      return failed(summary, apiError('rate_limit_exceeded', { message: 'Too many requests wait for this model.', ...retryAfter }), reason);
    case 'all_failed':
      return last ?? failed(summary, apiError('provider_failed'), reason);
    case 'unfit_for_images':
      return last ?? failed(summary, NONE_FIT_FOR_IMAGES, reason);
    case 'below_trust_floor':
      return last ?? failed(summary, trustNotAvailable(trustFloor, trustParam), reason);
    case 'none_routable':
    case 'hopeless':
    case 'timeout':
      return last ?? failed(summary, apiError('no_provider', retryAfter), reason);
  }
}

function providerNotAvailable(namedBy: Exclude<NotPlacedContext['namedBy'], 'preferences'>): ApiError {
  if (namedBy === 'candidates') return apiError('stale_key');
  if (namedBy === 'serial') return apiError('provider_not_available', { param: 'provider_serial' });
  const message = 'The provider that X-Inference-Provider-Id names is not connected or does not serve this model.';
  return apiError('provider_not_available', { param: 'X-Inference-Provider-Id', message });
}

function trustNotAvailable(trustFloor: TrustLevel | null, param: JobRequest['trustParam']): ApiError {
  if (trustFloor !== 'hardware') {
    return apiError('no_provider', { message: 'No provider of the trust level that this model requires is available.' });
  }
  const message = `No provider of the trust level that ${param} requires is available for this model.`;
  return apiError('no_provider', { message, param });
}
