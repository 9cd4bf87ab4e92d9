/** Outcome of a job for which no provider slot was found: the client's error, by the reason. */
import { type ApiError, apiError } from '@inference/formats';
import { attemptSummary, type ModelRun } from '../model-run.js';
import type { NotPlacedReason } from '../queue/request-queue.js';
import type { JobRequest } from '../request/job-request.js';
import { namedWithoutVision, nothingMatches } from '../request/job-routing.js';
import { clientDisconnected, failed, type JobOutcome } from './job-outcome.js';
import { NONE_FIT_FOR_IMAGES } from './outcome-policy.js';

/** The request queue gave no slot. The reason `unfit_for_images` means that all candidates were excluded for their image offers. */
export interface NotPlaced {
  readonly kind: 'refused';
  readonly reason: NotPlacedReason | 'unfit_for_images';
  /** Expected wait, if known. */
  readonly retryAfterMs: number | null;
}

/** Outcome of a job that got no slot. `last` is the outcome of its last attempt, if any. */
export function notPlacedOutcome({ reason, retryAfterMs }: NotPlaced, run: ModelRun, last: JobOutcome | null): JobOutcome {
  const { job, clientSignal } = run;
  const summary = attemptSummary(last?.provider ?? null, run);
  const retryAfter = retryAfterMs === null ? {} : { retryAfter: retryAfterMs / 1000 };
  switch (reason) {
    case 'aborted':
      return clientSignal.aborted ? clientDisconnected(summary) : failed(summary, apiError('shutting_down'), 'shutting_down');
    case 'no_vision':
      return last ?? failed(summary, namedWithoutVision(job) ?? noneMatches(run), reason);
    case 'no_such_serial': {
      const restriction = restrictionOf(job);
      // After an attempt, the other candidates have disconnected.
      if (last !== null && (restriction === 'candidates' || restriction === 'preferences')) return last;
      return failed(summary, restriction === 'preferences' ? noneMatches(run) : notAvailable(restriction), reason);
    }
    case 'queue_full':
      return failed(summary, apiError('rate_limit_exceeded', { message: 'Too many requests wait for this model.', ...retryAfter }), reason);
    case 'all_failed':
      return last ?? failed(summary, apiError('provider_failed'), reason);
    case 'unfit_for_images':
      return last ?? failed(summary, NONE_FIT_FOR_IMAGES, reason);
    case 'below_trust_floor':
      return last ?? failed(summary, trustNotAvailable(job), reason);
    case 'none_routable':
    case 'hopeless':
    case 'timeout':
      return last ?? failed(summary, apiError('no_provider', retryAfter), reason);
    default:
      return reason satisfies never;
  }
}

/** Outcome of an image job whose provider left, if no suitable one connected in time. */
export function noImageProvider(run: ModelRun, last: JobOutcome | null): JobOutcome {
  return failed(attemptSummary(last?.provider ?? null, run), apiError('no_provider'), 'no_image_provider');
}

type Restriction = 'candidates' | 'id' | 'serial' | 'preferences';

/** How the client restricted the providers: as candidates of a sealed request, by id, by serial number, or by preferences. */
function restrictionOf({ sealed, providerId, params }: JobRequest): Restriction {
  if (sealed !== null) return 'candidates';
  if (providerId !== null) return 'id';
  return params.providerSerial === null ? 'preferences' : 'serial';
}

function noneMatches({ job, routing }: ModelRun): ApiError {
  return nothingMatches(job.params, { routing, images: job.inputImages });
}

function notAvailable(restriction: Exclude<Restriction, 'preferences'>): ApiError {
  if (restriction === 'candidates') return apiError('stale_key');
  if (restriction === 'serial') return apiError('provider_not_available', { param: 'provider_serial' });
  const message = 'The provider that X-Inference-Provider-Id names is not connected or does not serve this model.';
  return apiError('provider_not_available', { param: 'X-Inference-Provider-Id', message });
}

function trustNotAvailable({ trustFloor, trustParam: param }: JobRequest): ApiError {
  if (trustFloor !== 'hardware') {
    return apiError('no_provider', { message: 'No provider of the trust level that this model requires is available.' });
  }
  const message = `No provider of the trust level that ${param} requires is available for this model.`;
  return apiError('no_provider', { message, param });
}
