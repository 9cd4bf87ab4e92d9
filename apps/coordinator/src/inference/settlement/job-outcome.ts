/** How a job ended and who had a part in it: for the client, the log, the ledger and the statistics. */
import { type ApiError, apiError, type SignedParts } from '@inference/formats';
import type { ProviderId, Receipt, TrustLevel } from '@inference/protocol';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { AttemptPlan } from '../attempt/hedged-request.js';
import type { Placement } from '../queue/request-queue.js';
import { unknownModel } from '../request/unknown-model.js';
import type { Charge, JobUsage } from './bill.js';
import type { CompletionProblem } from './completion-check.js';

/** How a job ended, for the log, the ledger and the statistics. */
export type JobOutcome =
  | (AttemptSummary & { readonly kind: 'delivered'; readonly billed: Billed })
  | (AttemptSummary & { readonly kind: 'failed'; readonly error: ApiError; readonly reason: string; readonly problem?: CompletionProblem })
  /** `billed`: what its stream had delivered before, if that was signed. */
  | (AttemptSummary & { readonly kind: 'client_gone'; readonly billed: Billed | null });

/** What was verified, what of it counts, and what that came to. */
export interface Billed {
  readonly receipt: Receipt;
  readonly signed: SignedParts;
  readonly usage: JobUsage;
  readonly charge: Charge;
}

/** One provider's part in a job, for metrics. */
export interface AttemptRecord {
  readonly providerId: ProviderId;
  /** `retry`: after another failed. `hedge`: beside another whose first content was late. */
  readonly role: AttemptPlan['role'];
  /** `answered`: it came to its end, verified or not; `overtaken`: another was quicker; `stopped`; or the code of its failure. */
  readonly end: string;
  readonly ms: number;
}

export interface AttemptSummary {
  /** Of all providers that were tried, in the order in which they ended. */
  readonly attemptRecords: readonly AttemptRecord[];
  readonly attempts: number;
  /** The provider that decided, or was tried last. */
  readonly provider: ProviderConnection | null;
}

/** Before anyone was tried. */
export const NO_ATTEMPTS: AttemptSummary = { attemptRecords: [], attempts: 0, provider: null };

export function failed(tried: AttemptSummary, error: ApiError, reason: string): JobOutcome & { kind: 'failed' } {
  return { kind: 'failed', error, reason, ...tried };
}

/** The end of a job for a model that nobody serves. `expected`: somebody may again before long. `listed`: names of listed models. */
export function notServed(model: string, expected: boolean, listed: () => readonly string[]): JobOutcome & { kind: 'failed' } {
  if (!expected) return failed(NO_ATTEMPTS, unknownModel(model, listed()), 'model_not_found');
  const message = 'No provider serves this model at the moment.';
  return failed(NO_ATTEMPTS, apiError('no_provider', { param: 'model', message }), 'none_serving');
}

export interface NotPlacedContext {
  readonly clientGone: boolean;
  /** What the client itself asked for. */
  readonly trustFloor: TrustLevel | null;
  /** How the client named its machine, if it did. */
  readonly namedBy: 'serial' | 'id';
  readonly tried: AttemptSummary;
  /** What became of the job on the last provider that had it. */
  readonly last: JobOutcome | null;
}

/** The end of a job that got no place. */
export function notPlaced(
  { reason, retryAfterMs }: Placement & { kind: 'refused' },
  { clientGone, trustFloor, namedBy, tried, last }: NotPlacedContext,
): JobOutcome {
  const retryLater = retryAfterMs === null ? {} : { retryAfter: retryAfterMs / 1000 };
  switch (reason) {
    case 'aborted':
      if (clientGone) return { kind: 'client_gone', billed: null, ...tried };
      return failed(tried, apiError('shutting_down'), 'shutting_down');
    case 'no_such_serial':
      return failed(tried, notAvailable(namedBy), reason);
    case 'queue_full':
      return failed(tried, apiError('rate_limit_exceeded', { message: 'Too many requests wait for this model.', ...retryLater }), reason);
    case 'all_failed':
      return last ?? failed(tried, apiError('provider_failed'), reason);
    case 'below_trust_floor':
      return last ?? failed(tried, tooLittleTrust(trustFloor), reason);
    case 'none_routable':
    case 'hopeless':
    case 'timeout':
      return last ?? failed(tried, apiError('no_provider', retryLater), reason);
  }
}

function notAvailable(namedBy: NotPlacedContext['namedBy']): ApiError {
  if (namedBy === 'serial') return apiError('provider_not_available', { param: 'provider_serial' });
  const message = 'The provider that X-Inference-Provider-Id names is not connected or does not serve this model.';
  return apiError('provider_not_available', { param: 'X-Inference-Provider-Id', message });
}

function tooLittleTrust(trustFloor: TrustLevel | null): ApiError {
  if (trustFloor !== 'hardware') {
    return apiError('no_provider', { message: 'No provider of the trust level that this model asks for is available.' });
  }
  const message = 'No provider of the trust level that X-Inference-Trust asks for is available for this model.';
  return apiError('no_provider', { message, param: 'X-Inference-Trust' });
}
