/**
 * `RefusalTracker` evaluates refusals: failures (`job_failed`) for which a provider blames the client's request, such as a long prompt.
 *
 * If possible, another provider must confirm a refusal. False and unusually frequent refusals are recorded as faults of the provider.
 *
 * A provider can also refuse a sealed (end-to-end encrypted) request, with a signed reason that only the client can read. That refusal is
 * recorded only if another provider answers the request; see `contradicted`.
 */
import { modelTypeOf } from '@inference/formats';
import type { JobFailure, ModelOffer, ProviderId } from '@inference/protocol';
import { namesProvider } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { PlacementService } from '../../providers/placement/placement-service.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { type ModelRun, providerIdOf } from '../model-run.js';
import { type JobRequest, maxPromptTokens } from '../request/job-request.js';
import type { VerifiedCounts } from './completion-check.js';
import type { JobOutcome } from './job-outcome.js';
import { type AttemptResult, FALSE_REFUSAL } from './outcome-policy.js';
import { RefusalRates } from './refusal-rates.js';

export interface ProviderRefusal {
  readonly provider: ProviderConnection;
  readonly failure: JobFailure;
  /** The provider's offer of the model at the time of the refusal, if any. */
  readonly offer: ModelOffer | undefined;
  readonly isProven: boolean;
  /** Whether the request or the provider's own offer contradicts the refusal. */
  readonly isFalse: boolean;
}

/** Maximum faults per window, account and provider. Bounds the harm that one client can do to a provider. */
const MAX_COUNTED_PER_ACCOUNT = 3;
const WINDOW_MS = 10 * 60_000;
const MAX_ACCOUNT_PROVIDERS = 50_000;
/** Number of refusals that confirm each other. With a proven provider (`ProviderConnection.isProven`) among them, two suffice. */
const UNPROVEN_QUORUM = 3;
/** Minimum plausible context limit, as a share of the offered context. An engine may reserve a few positions. */
const LIMIT_TOLERANCE = 0.9;
/** `minShare` for {@link RefusalRates.isFrequent} if a provider with another agent version answered the job. */
const MIN_SHARE_OF_OTHER_AGENT = 0.9;

const CONTRADICTED_REFUSAL = 'refusal_contradicted';
const FREQUENT_REFUSALS = 'refusals_frequent';

interface RefusalTrackerOptions {
  readonly registry: { readonly placement: Pick<PlacementService, 'providersOfOwner'> };
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class RefusalTracker {
  readonly #options: RefusalTrackerOptions;
  readonly #rates: RefusalRates;
  /** Faults in the current window. Key: account and provider. */
  readonly #counts = new BoundedMap<string, { readonly since: number; count: number }>(MAX_ACCOUNT_PROVIDERS);

  constructor(options: RefusalTrackerOptions) {
    this.#options = options;
    this.#rates = new RefusalRates(options.now);
  }

  /** Records a refusal. Excludes the provider from this job and, unless the refusal is false, the owner's other providers. */
  refused({ job, slotRequest, refusals }: ModelRun, provider: ProviderConnection, failure: JobFailure): void {
    const { model } = slotRequest;
    const { ownerAccountId } = provider;
    const offer = provider.models.find(({ id }) => id === model);
    const isProven = provider.isProven(model);
    const hasNoImage = failure.code === 'invalid_image' && job.inputImages === null;
    const isFalse = hasNoImage || contradictsOffer(failure, offer, job);
    refusals.push({ provider, failure, offer, isProven, isFalse });
    slotRequest.exclude.add(providerIdOf(provider));
    if (isFalse) {
      provider.report({ kind: 'fault', fault: 'unverified', reason: FALSE_REFUSAL });
      return;
    }
    if (ownerAccountId === null) return;
    slotRequest.excludedOwners.add(ownerAccountId);
    for (const other of this.#options.registry.placement.providersOfOwner(model, ownerAccountId)) slotRequest.exclude.add(other);
  }

  /** Evaluates the refusals of a model run after its end. An answer by another provider contradicts some of them. */
  runEnded({ refusals, job, slotRequest }: ModelRun, outcome: JobOutcome): void {
    const { model } = slotRequest;
    const isNamedByClient = namesProvider(slotRequest);
    const answer = outcome.kind === 'failed' ? null : outcome.billed;
    if (answer !== null && outcome.provider !== null && !isNamedByClient) this.#rates.answered(model, providerIdOf(outcome.provider));
    for (const refusal of refusals) {
      // False refusals are already recorded.
      if (refusal.isFalse) continue;
      const { provider, failure } = refusal;
      if (answer !== null && isContradicted(refusal, answer.receipt)) {
        if (isImpossible(refusal, job)) provider.report({ kind: 'fault', fault: 'unverified', reason: FALSE_REFUSAL });
        else {
          this.#reportFault(job.accountId, provider, CONTRADICTED_REFUSAL);
          if (!isNamedByClient) this.#rates.refused(model, providerIdOf(provider));
        }
        continue;
      }
      // The answer shows that the prompt exceeds this provider's context.
      if (answer !== null && failure.code === 'context_length_exceeded') continue;
      // A client that names the provider could otherwise make refusals of its choice look frequent.
      if (isNamedByClient) continue;
      this.#rates.refused(model, providerIdOf(provider));
      if (answer !== null && this.#isFrequent(refusal, model, outcome.provider)) {
        this.#reportFault(job.accountId, provider, FREQUENT_REFUSALS);
      }
    }
  }

  /** Records that a second candidate answered a sealed request which this provider had refused. */
  contradicted(accountId: string, provider: ProviderConnection): void {
    this.#reportFault(accountId, provider, CONTRADICTED_REFUSAL);
  }

  #isFrequent(refusal: ProviderRefusal, model: string, answering: ProviderConnection | null): boolean {
    const minShare = answering !== null && isOtherAgent(refusal, answering) ? MIN_SHARE_OF_OTHER_AGENT : undefined;
    return this.#rates.isFrequent(model, providerIdOf(refusal.provider), minShare);
  }

  /** Reports a fault to the provider's reputation, unless this account has already caused the maximum number there. */
  #reportFault(accountId: string, provider: ProviderConnection, reason: string): void {
    if (this.#countWithinLimit(accountId, providerIdOf(provider))) provider.report({ kind: 'fault', fault: 'failed', reason });
  }

  /** Counts a fault caused by this account. Returns false if the account has reached its maximum. */
  #countWithinLimit(accountId: string, providerId: ProviderId): boolean {
    const key = `${accountId} ${providerId}`;
    const now = this.#options.now();
    const known = this.#counts.get(key);
    const counted = known === undefined || Math.abs(now - known.since) > WINDOW_MS ? { since: now, count: 0 } : known;
    counted.count++;
    this.#counts.set(key, counted);
    return counted.count <= MAX_COUNTED_PER_ACCOUNT;
  }
}

/** Result of the newest refusal, for the outcome policy. */
export function refusalResult({ refusals }: Pick<ModelRun, 'refusals'>): AttemptResult & { readonly kind: 'refused' } {
  const newest = refusals.at(-1);
  if (newest === undefined) throw new Error('no provider refused the job');
  const credibility = newest.isFalse ? 'false' : isConfirmed(refusals) ? 'confirmed' : 'unconfirmed';
  return { kind: 'refused', failure: newest.failure, credibility };
}

/** Whether enough providers have refused the job. */
function isConfirmed(refusals: readonly ProviderRefusal[]): boolean {
  const plausible = refusals.filter(({ isFalse }) => !isFalse);
  return plausible.length >= UNPROVEN_QUORUM || (plausible.length > 1 && plausible.some(({ isProven }) => isProven));
}

/** Whether the provider's own offer shows that the refusal is false. */
export function contradictsOffer(failure: JobFailure, offer: ModelOffer | undefined, { endpoint }: Pick<JobRequest, 'endpoint'>): boolean {
  if (offer === undefined) return false;
  const { code, limit, actual, param } = failure;
  if (code === 'unsupported') return param === 'model' && offer.model_type === modelTypeOf(endpoint);
  if (code !== 'context_length_exceeded' || limit === undefined) return false;
  return limit < LIMIT_TOLERANCE * offer.context_length - 1 || (actual !== undefined && actual < limit);
}

/** Whether the refused prompt cannot have exceeded the context. False for embeddings, whose tokenizers may expand text. */
function isImpossible({ failure, offer }: ProviderRefusal, job: JobRequest): boolean {
  if (job.endpoint === '/v1/embeddings' || offer === undefined) return false;
  const bound = maxPromptTokens(job, offer.vision?.max_image_tokens ?? 0);
  return failure.code === 'context_length_exceeded' && bound < offer.context_length;
}

/** Whether a different agent version may explain the refusal: versions differ in supported features. */
function isOtherAgent({ failure, provider: { registration } }: ProviderRefusal, answered: ProviderConnection): boolean {
  if (failure.code !== 'unsupported') return false;
  const other = answered.registration;
  return registration.agentName !== other.agentName || registration.agentVersion !== other.agentVersion;
}

/** Whether an answer to the same request shows that the refusal was wrong. Engines differ in supported features. */
function isContradicted({ failure, offer }: ProviderRefusal, { usage }: VerifiedCounts): boolean {
  switch (failure.code) {
    case 'context_length_exceeded':
      return offer !== undefined && usage.prompt_tokens < LIMIT_TOLERANCE * offer.context_length;
    case 'unsupported':
      return false;
    default:
      return true;
  }
}
