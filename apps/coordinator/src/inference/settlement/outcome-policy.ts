/** `outcomePolicy` maps each unsuccessful result of an attempt to a retry decision, a consequence for the provider and a client error. */
import { type ApiError, apiError, jobFailureError } from '@inference/formats';
import { JOB_FAILURES, type JobFailure, type JobFailureCode } from '@inference/protocol';
import type { AttemptOutcome, FailedAttempt, UnopenedCode } from '../attempt/attempt.js';
import type { CompletionProblem } from './completion-check.js';

/** Result of an attempt after verification. Includes results that only the coordinator can find. */
export type AttemptResult =
  | Exclude<AttemptOutcome, { kind: 'completed' }>
  /** Plain mode: the attempt could not start, because the provider's sealing key expired or its offer does not suit the job. */
  | { readonly kind: 'key_expired' }
  /** End-to-end mode: the attempt could not start. The provider no longer accepts the client's key, or its offer does not suit the job. */
  | { readonly kind: 'stale_key' }
  /** End-to-end mode: the candidate was not asked, because its image sizes do not suit the job (`mayGenerateImages`). */
  | { readonly kind: 'unfit_for_images' }
  /** Signature, receipt, token counts or images are not valid. */
  | { readonly kind: 'unverified'; readonly problem: CompletionProblem }
  /** Verified images could not be stored for download. */
  | { readonly kind: 'images_not_stored' }
  /** The provider blames the client for the failure; see `RefusalTracker`. */
  | { readonly kind: 'refused'; readonly failure: JobFailure; readonly credibility: RefusalCredibility };

/** A refusal is `false` if the request or the provider's own offer contradicts it, and `confirmed` if enough providers refused. */
type RefusalCredibility = 'false' | 'unconfirmed' | 'confirmed';

/**
 * Consequence for the provider, which `recordResult` applies. A lost connection is `none`, because the registry records that fault.
 *
 * - `none`: no fault. The job gets no further attempt on this connection.
 * - `slow`: another attempt was faster. The delay is recorded, and the job gets no further attempt there.
 * - `busy`, `draining`: no fault, and this job may get another attempt there.
 * - `client`: the provider blames the client. `misbehaved`: the provider violated the protocol.
 */
export type Blame = 'none' | 'slow' | 'busy' | 'draining' | 'client' | 'failed' | 'timed_out' | 'unverified' | 'misbehaved';

interface OutcomePolicy {
  /** Whether another attempt may follow, within the limits of the job. */
  readonly retry: boolean;
  readonly blame: Blame;
  readonly error: ApiError;
  /** Code for log, metrics and traces. Never text from a provider. */
  readonly reason: string;
  /** Code that is stored with the provider's fault. */
  readonly detail: string;
}

export const ENGINE_FAILED = 'engine_failed' satisfies JobFailureCode;
export const FALSE_REFUSAL = 'refusal_false';
export const UNFIT_FOR_IMAGES = 'unfit_for_images';

export const NONE_FIT_FOR_IMAGES = apiError('provider_not_available', {
  param: 'context.image_size',
  message: 'No candidate makes images of the charged size.',
});

/** Failure reasons of providers that left during the job and may reconnect. */
export const PROVIDER_LEFT_REASONS: ReadonlySet<string> = new Set(['connection_lost', 'draining', 'away']);

export function isFailure(outcome: AttemptOutcome): outcome is FailedAttempt {
  return outcome.kind !== 'completed' && outcome.kind !== 'stopped' && outcome.kind !== 'overtaken';
}

export function blamesClient(outcome: AttemptOutcome): outcome is FailedAttempt & { kind: 'failed' } {
  return outcome.kind === 'failed' && JOB_FAILURES[outcome.failure.code].blame === 'client';
}

/** The policy for a result. Whether a retry takes place also depends on time, attempts left and sent bytes; see `AttemptRunner`. */
export function outcomePolicy(result: AttemptResult): OutcomePolicy {
  switch (result.kind) {
    case 'failed':
      return reportedFailurePolicy(result.failure);
    case 'lost':
      return policy(true, 'none', apiError('provider_failed'), 'connection_lost');
    case 'timeout':
      return policy(true, 'timed_out', apiError('provider_timeout'), `timeout_${result.phase}`);
    case 'unsent':
      return policy(true, 'none', apiError('no_provider'), 'unsent');
    case 'violated':
      return policy(true, 'misbehaved', apiError('provider_failed'), result.violation);
    case 'unsealable':
      return policy(true, 'misbehaved', apiError('provider_failed'), 'unusable_key');
    case 'unopened':
      return policy(true, 'none', unopenedError(result.code), `unopened_${result.code}`);
    case 'stale_key':
      return policy(true, 'none', apiError('stale_key'), 'stale_key');
    case 'unfit_for_images':
      return policy(true, 'none', NONE_FIT_FOR_IMAGES, UNFIT_FOR_IMAGES);
    // The coordinator is shutting down. If the client disconnected instead, nobody reads this error.
    case 'stopped':
      return policy(false, 'none', apiError('shutting_down'), 'shutting_down');
    case 'overtaken':
      return policy(false, 'slow', apiError('shutting_down'), 'shutting_down');
    case 'key_expired':
      return policy(true, 'none', apiError('no_provider'), 'key_expired');
    case 'unverified':
      return policy(true, 'unverified', apiError('bad_signature'), 'bad_signature', result.problem);
    case 'images_not_stored':
      return policy(true, 'none', apiError('images_unavailable'), 'images_not_stored');
    case 'refused':
      return refusalPolicy(result.failure, result.credibility);
    default:
      return result satisfies never;
  }
}

function unopenedError(code: UnopenedCode): ApiError {
  switch (code) {
    case 'unknown_key':
      return apiError('stale_key');
    case 'replayed':
      return apiError('sealed_request_replayed');
    case 'expired':
      return apiError('invalid_request', {
        param: 'context.expires_at',
        message: 'The sealed request has expired. Seal the request again.',
      });
    case 'bad_context':
      return apiError('invalid_request', { param: 'context', message: 'A candidate refused the context of the sealed request.' });
    case 'unsealing_failed':
      return apiError('invalid_request', { message: 'No candidate could open the sealed request.' });
    default:
      return code satisfies never;
  }
}

function reportedFailurePolicy(failure: JobFailure): OutcomePolicy {
  const reason = failure.code;
  switch (JOB_FAILURES[failure.code].blame) {
    // Callers need only the reason for the log. Retry and blame follow from `refusalResult`, which knows all refusals of the job.
    case 'client':
      return refusalPolicy(failure, 'confirmed');
    case 'capacity':
      return policy(true, failure.code === 'draining' ? 'draining' : 'busy', apiError('no_provider'), reason);
    case 'provider':
    // `recordResult` handles a disconnected client. Otherwise, the provider cancelled the job on its own.
    case 'nobody':
      return policy(true, 'failed', apiError('provider_failed'), reason);
  }
}

function refusalPolicy(failure: JobFailure, credibility: RefusalCredibility): OutcomePolicy {
  if (credibility === 'false') return policy(true, 'unverified', apiError('provider_failed'), FALSE_REFUSAL);
  return policy(credibility === 'unconfirmed', 'client', jobFailureError(failure), failure.code);
}

function policy(retry: boolean, blame: Blame, error: ApiError, reason: string, detail = reason): OutcomePolicy {
  return { retry, blame, error, reason, detail };
}
