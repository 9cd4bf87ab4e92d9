/**
 * RefusalTracker that blame the client. The client sees one only when a second machine says the same, or no other machine can be asked.
 * A refusal that the provider's own offer proves false is a lie; one that another machine contradicts, and refusals that are
 * frequent beside those of the model's other machines, are failures.
 */
import { apiError, modelTypeOf } from '@inference/formats';
import type { JobFailure, ModelOffer, ProviderId, Receipt } from '@inference/protocol';
import { namesProvider } from '@inference/scheduler';
import { promptTokenBound } from '../../billing/prices/settlement-bounds.js';
import { BoundedMap } from '../../limits/bounded-map.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { JobRequest } from '../request/job-request.js';
import { providerOf, type RunningJob } from '../running-job.js';
import { failed, type JobOutcome } from './job-outcome.js';
import { judgeFailure } from './outcome-policy.js';
import { RefusalRates } from './refusal-rates.js';

/** One refusal of a job. */
export interface ProviderRefusal {
  readonly provider: ProviderConnection;
  readonly failure: JobFailure;
  /** What the provider offered then; undefined: it does not offer the model any more. */
  readonly offer: ModelOffer | undefined;
  /** Whether the provider had proved itself before; see `Fleet.isProved`. */
  readonly isProven: boolean;
  /** Proved false by the provider's own offer. */
  readonly isLie: boolean;
}

/** Whose failure counts, and how often one account may cause one in a window. */
const MAX_COUNTED_PER_ACCOUNT = 3;
const WINDOW_MS = 10 * 60_000;
const MAX_PAIRS = 50_000;
/** RefusalTracker by machines that have not proved themselves that are believed together. */
const UNPROVED_QUORUM = 3;
/** Share of the offered context from which on a told limit is believed: an engine may need a few places for itself. */
const LIMIT_TOLERANCE = 0.9;

/** Share of its jobs beyond which a machine's refusals are frequent where the machine that answers has another version of the agent. */
const MIN_SHARE_OF_OTHER_AGENT = 0.9;

export const FALSE_REFUSAL = 'refusal_false';
const CONTRADICTED_REFUSAL = 'refusal_contradicted';
const FREQUENT_REFUSALS = 'refusals_frequent';

export interface RefusalTrackerOptions {
  readonly fleet: Pick<ProviderRegistry, 'reputations' | 'placement'>;
  /** Milliseconds. */
  readonly now: () => number;
}

export class RefusalTracker {
  readonly #options: RefusalTrackerOptions;
  readonly #rates: RefusalRates;
  readonly #counted = new BoundedMap<string, { readonly since: number; count: number }>(MAX_PAIRS);

  constructor(options: RefusalTrackerOptions) {
    this.#options = options;
    this.#rates = new RefusalRates(options.now);
  }

  /** A provider refused the job and blames the client. The provider, and others of the same owner, get no further part in it. */
  refused({ job, request, refusals }: RunningJob, provider: ProviderConnection, failure: JobFailure): void {
    const { fleet } = this.#options;
    const { model } = request;
    const providerId = providerOf(provider);
    const offer = provider.models.find(({ id }) => id === model);
    const isLie = contradictsOffer(failure, offer, job);
    const isProven = provider.isProven(model);
    refusals.push({ provider, failure, offer, isProven, isLie });
    request.exclude.add(providerId);
    if (isLie) {
      fleet.reputations.recordFault(providerId, 'unverified', FALSE_REFUSAL);
      return;
    }
    const owner = provider.ownerAccountId;
    if (owner !== null) for (const other of fleet.placement.providersOfOwner(model, owner)) request.exclude.add(other);
  }

  /** Takes in how the job ended after refusals: whoever answered it contradicts some of them. */
  settle(run: RunningJob, end: JobOutcome): void {
    const { refusals, job, request } = run;
    const { model } = request;
    const isPinned = namesProvider(request);
    const answer = end.kind === 'failed' ? null : end.billed;
    const honest = refusals.filter(({ isLie }) => !isLie);
    if (answer !== null && end.provider !== null && !isPinned) this.#rates.answered(model, providerOf(end.provider));
    for (const refusal of honest) {
      const providerId = providerOf(refusal.provider);
      if (answer !== null) {
        if (!isContradicted(refusal, answer.receipt)) {
          // The answer shows that the request was too long for this provider.
          if (refusal.failure.code === 'context_length_exceeded') continue;
        } else if (isImpossible(refusal, job)) {
          this.#options.fleet.reputations.recordFault(providerId, 'unverified', FALSE_REFUSAL);
          continue;
        } else {
          if (this.#count(job.accountId, providerId))
            this.#options.fleet.reputations.recordFault(providerId, 'failed', CONTRADICTED_REFUSAL);
          if (!isPinned) this.#rates.refused(model, providerId);
          continue;
        }
      }
      // A client that names its machine would choose whose refusals are frequent.
      if (isPinned) continue;
      this.#rates.refused(model, providerId);
      const minShare = end.provider !== null && isOtherAgent(refusal, end.provider) ? MIN_SHARE_OF_OTHER_AGENT : undefined;
      if (answer !== null && this.#rates.isFrequent(model, providerId, minShare) && this.#count(job.accountId, providerId)) {
        this.#options.fleet.reputations.recordFault(providerId, 'failed', FREQUENT_REFUSALS);
      }
    }
  }

  /** Whether one more failure of the provider that this account caused counts. */
  #count(accountId: string, providerId: ProviderId): boolean {
    const key = `${accountId} ${providerId}`;
    const now = this.#options.now();
    const known = this.#counted.get(key);
    const counted = known === undefined || Math.abs(now - known.since) > WINDOW_MS ? { since: now, count: 0 } : known;
    counted.count++;
    this.#counted.set(key, counted);
    return counted.count <= MAX_COUNTED_PER_ACCOUNT;
  }
}

/** What the newest refusal of a job means for the client: the end of it, or the end if nobody else can be asked. */
export function rulingOn(
  { refusals }: Pick<RunningJob, 'refusals'>,
  tried: Parameters<typeof failed>[0],
): { done: JobOutcome } | { retry: JobOutcome } {
  const newest = refusals.at(-1);
  if (newest === undefined) throw new Error('nobody refused the job');
  if (newest.isLie) return { retry: failed(tried, apiError('provider_failed'), FALSE_REFUSAL) };
  const { error, reason } = judgeFailure({ kind: 'failed', failure: newest.failure });
  const end = failed(tried, error, reason);
  return isConfirmed(refusals) ? { done: end } : { retry: end };
}

/** Whether the refusals of a job are enough to believe them. */
export function isConfirmed(refusals: readonly ProviderRefusal[]): boolean {
  const plausible = refusals.filter(({ isLie }) => !isLie);
  return plausible.length >= UNPROVED_QUORUM || (plausible.length > 1 && plausible.some(({ isProven }) => isProven));
}

/** Whether what the provider offers proves the refusal false. */
export function contradictsOffer(failure: JobFailure, offer: ModelOffer | undefined, { endpoint }: Pick<JobRequest, 'endpoint'>): boolean {
  if (offer === undefined) return false;
  const { code, limit, actual, param } = failure;
  if (code === 'unsupported') return param === 'model' && offer.model_type === modelTypeOf(endpoint);
  if (code !== 'context_length_exceeded' || limit === undefined) return false;
  return limit < LIMIT_TOLERANCE * offer.context_length - 1 || (actual !== undefined && actual < limit);
}

/**
 * Whether no prompt of the request's size can exceed the offered context: each token covers at least a byte. Tokenizers of embedding
 * models normalize Unicode first, which makes 18 characters of U+FDFA.
 */
function isImpossible({ failure, offer }: ProviderRefusal, { endpoint, body }: JobRequest): boolean {
  if (endpoint === '/v1/embeddings' || offer === undefined) return false;
  return failure.code === 'context_length_exceeded' && promptTokenBound(body.length) < offer.context_length;
}

/** Whether the refusal may be due to the version of the agent: what one version does not support, another may. */
function isOtherAgent({ failure, provider: { registration } }: ProviderRefusal, { registration: other }: ProviderConnection): boolean {
  if (failure.code !== 'unsupported') return false;
  return registration.agentName !== other.agentName || registration.agentVersion !== other.agentVersion;
}

/** Whether an answer to the same request shows that the refusal was wrong. Engines differ in what they support. */
function isContradicted({ failure, offer }: ProviderRefusal, { usage }: Receipt): boolean {
  switch (failure.code) {
    case 'context_length_exceeded':
      return offer !== undefined && usage.prompt_tokens < LIMIT_TOLERANCE * offer.context_length;
    case 'unsupported':
      return false;
    default:
      return true;
  }
}
