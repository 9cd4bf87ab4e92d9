/**
 * `AttemptRunner` runs the attempts of a job with one model. After a failure, it retries while nothing was sent to the client.
 *
 * While the first content is late, a second (hedged) attempt may run beside the first. Used by `JobRunner`.
 */
import { apiError, type SignedParts } from '@inference/formats';
import type { JobContext, KeyId } from '@inference/protocol';
import type { Encapsulation } from '@inference/protocol/crypto';
import { namesProvider } from '@inference/scheduler';
import { microUsd } from '../../billing/micro-usd.js';
import { imageOfferOf, visionOfferOf } from '../../providers/placement/model-directory.js';
import type { PlacementService } from '../../providers/placement/placement-service.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { MAX_ATTEMPTS } from '../job-timings.js';
import { attemptSummary, type ModelRun, providerIdOf, recordAttempt } from '../model-run.js';
import type { Placed, SlotRequest } from '../queue/request-queue.js';
import type { CacheScopes } from '../request/cache-scopes.js';
import { jobContext } from '../request/job-context.js';
import { type JobRequest, mayGenerateImages } from '../request/job-request.js';
import { EngineFailures } from '../settlement/engine-failures.js';
import { type AttemptSummary, clientDisconnected, failed, type JobOutcome } from '../settlement/job-outcome.js';
import { noImageProvider, notPlacedOutcome } from '../settlement/not-placed.js';
import { blamesClient, isFailure, outcomePolicy, UNFIT_FOR_IMAGES } from '../settlement/outcome-policy.js';
import { type ResultRecorders, recordResult } from '../settlement/record-result.js';
import { RefusalTracker, refusalResult } from '../settlement/refusal-tracker.js';
import { settleAnswer } from '../settlement/settle-answer.js';
import type { AttemptOutcome, AttemptPlan, CompletedAttempt } from './attempt.js';
import { AttemptPlacement, type AttemptPlacementOptions } from './attempt-placement.js';
import { type EndedAttempt, HedgedRequest } from './hedged-request.js';
import { HedgeBudget, LatencyTracker } from './hedging-policy.js';
import type { EncapsulationPool } from './sealing/encapsulation-pool.js';
import { expectedTokenMs } from './stall-budget.js';

export interface AttemptRunnerOptions extends AttemptPlacementOptions {
  /** Providers connected to this process. */
  readonly registry: { readonly placement: Pick<PlacementService, 'unfitForImages' | 'providersOfOwner'> };
  /** Maximum share of hedged attempts, in percent of the other attempts. 0 disables hedging. */
  readonly hedgePercent: number;
  readonly cacheScopes: CacheScopes;
  readonly encapsulationPool: Pick<EncapsulationPool, 'take'>;
  readonly random: () => number;
  /** Called when verified images could not be stored for download. */
  readonly onImageStoreError: (error: unknown) => void;
}

/** Share of refused sealed (end-to-end encrypted) requests that are also sent to a second candidate. */
const CONFIRMED_SHARE = 1 / 20;

/** Result of an attempt, or of two concurrent ones. After `retry`, `outcome` stands only if no other provider can be tried. */
interface NextStep {
  readonly kind: 'done' | 'retry';
  readonly outcome: JobOutcome;
}

export class AttemptRunner {
  readonly #options: AttemptRunnerOptions;
  readonly #placement: AttemptPlacement;
  readonly #hedgedRequests = new Set<HedgedRequest>();
  readonly #hedgeBudget: HedgeBudget;
  readonly #recorders: ResultRecorders;
  #isStopping = false;

  constructor(options: AttemptRunnerOptions) {
    this.#options = options;
    this.#placement = new AttemptPlacement(options);
    this.#hedgeBudget = new HedgeBudget(options.hedgePercent);
    this.#recorders = {
      latencyTracker: new LatencyTracker(options.timings),
      engineFailures: new EngineFailures(options.now),
      refusals: new RefusalTracker(options),
    };
  }

  /** Runs attempts until one decides the job with this model. The caller has reserved the job's maximum cost. */
  async run(run: ModelRun): Promise<JobOutcome> {
    const outcome = await this.#tryProviders(run);
    this.#recorders.engineFailures.runEnded(run, outcome.kind === 'delivered' || outcome.kind === 'client_gone');
    this.#recorders.refusals.runEnded(run, outcome);
    if (outcome.kind === 'delivered' && run.refusingProvider !== null) {
      this.#recorders.refusals.contradicted(run.job.accountId, run.refusingProvider);
    }
    return outcome;
  }

  /** Whether a further attempt of the run may begin now. */
  canRetry({ attemptCount, delivery, deadline, clientSignal, routing }: ModelRun): boolean {
    const isInTime = this.#options.now() < deadline;
    const maxAttempts = routing?.preferences.allowsFallbacks === false ? 1 : MAX_ATTEMPTS;
    return attemptCount < maxAttempts && !delivery.isCommitted && isInTime && !this.#isStopping && !clientSignal.aborted;
  }

  /** Stops running attempts and prevents new ones. */
  stop(): void {
    this.#isStopping = true;
    for (const hedged of [...this.#hedgedRequests]) hedged.stop();
  }

  async #tryProviders(run: ModelRun): Promise<JobOutcome> {
    const { observer } = this.#options;
    let last: JobOutcome | null = null;
    /** Refusal by a proven provider (`ProviderConnection.isProven`). Returned to the client unless another provider answers. */
    let provenRefusal: JobOutcome | null = null;
    for (;;) {
      const placement = takeReservedSlot(run) ?? (await this.#placement.place(run, provenRefusal !== null));
      if (placement.kind === 'refused') {
        if (provenRefusal !== null && placement.reason !== 'aborted') return provenRefusal;
        const supply = await this.#placement.waitForImages(run, last, placement.reason);
        if (supply === 'retry') continue;
        return supply === 'none' ? noImageProvider(run, last) : notPlacedOutcome(placement, run, last);
      }
      const { kind, outcome } = await this.#tryProvider(placement, run);
      if (kind === 'done') return outcome;
      // Other providers may be busy or have failed, so one whose image sizes do not suit the job does not decide the outcome.
      if (outcome.kind !== 'failed' || outcome.reason !== UNFIT_FOR_IMAGES) last = outcome;
      const refusal = run.refusals.at(-1);
      if (refusal?.isProven === true && !refusal.isFalse && refusal.provider === outcome.provider) provenRefusal = outcome;
      const retried = this.canRetry(run);
      if (outcome.kind === 'failed') observer.event({ type: 'attempt_failed', reason: outcome.reason, retried });
      if (!retried) {
        takeReservedSlot(run)?.slot.release();
        return provenRefusal ?? last ?? outcome;
      }
    }
  }

  /** Runs an attempt on a placed provider, and a second one elsewhere if the first is late. */
  async #tryProvider(placed: Placed, run: ModelRun): Promise<NextStep> {
    const plan = this.#plan(placed, run, run.attemptCount === 0 ? 'first' : 'retry');
    if (plan === null) return this.#notStarted(placed.slot.provider, run);
    this.#hedgeBudget.earn();
    const hedged = new HedgedRequest(run.delivery, run.job.body, this.#options.timings);
    const recall = (): void => hedged.recall();
    run.clientSignal.addEventListener('abort', recall);
    this.#hedgedRequests.add(hedged);
    try {
      hedged.start(plan);
      const decided = await this.#followEvents(hedged, run);
      this.#recordDecisive(decided, run);
      return await this.#conclude(decided.plan, decided.outcome, run);
    } finally {
      run.clientSignal.removeEventListener('abort', recall);
      this.#hedgedRequests.delete(hedged);
    }
  }

  /** Reacts to late and silent attempts until one attempt decides. */
  async #followEvents(hedged: HedgedRequest, run: ModelRun): Promise<EndedAttempt> {
    for (;;) {
      const event = await hedged.next();
      switch (event.kind) {
        case 'decided':
          return event;
        case 'ended':
          this.#recordEnded(event, run);
          break;
        case 'overdue': {
          const requestElsewhere = withoutProvidersOf(run.slotRequest, event.running);
          if (event.silent !== null && this.canRetry(run) && this.#options.placements.hasIdleProvider(requestElsewhere)) {
            hedged.abandon(event.silent);
          } else if (event.isLate) {
            const second = await this.#planHedge(requestElsewhere, run);
            if (second !== null) hedged.start(second);
          }
          break;
        }
        default:
          event satisfies never;
      }
    }
  }

  /** Plan of a hedged attempt on an idle provider, if one may start now. */
  async #planHedge(requestElsewhere: SlotRequest, run: ModelRun): Promise<AttemptPlan | null> {
    if (namesProvider(requestElsewhere) || !this.#hedgeBudget.canSpend || !this.canRetry(run)) return null;
    const placed = await this.#options.placements.placeOnIdleProvider(requestElsewhere);
    if (placed === null) return null;
    const plan = this.#plan(placed, run, 'hedge');
    if (plan === null) return null;
    this.#hedgeBudget.spend();
    this.#options.observer.event({ type: 'hedge', outcome: 'sent' });
    return plan;
  }

  #recordEnded({ plan, outcome, elapsedMs }: EndedAttempt, run: ModelRun): void {
    const { observer } = this.#options;
    if (plan.role === 'hedge') observer.event({ type: 'hedge', outcome: 'lost' });
    if (isFailure(outcome)) observer.event({ type: 'attempt_failed', reason: outcomePolicy(outcome).reason, retried: true });
    recordAttempt(run, plan, outcome, elapsedMs);
    if (outcome.kind !== 'completed') recordResult(plan, outcome, elapsedMs, run, this.#recorders);
  }

  #recordDecisive({ plan, outcome, elapsedMs }: EndedAttempt, run: ModelRun): void {
    const { placements, observer } = this.#options;
    const { model } = run.slotRequest;
    if (outcome.kind === 'completed') {
      placements.served(model, outcome.elapsedMs);
      this.#recorders.latencyTracker.observe(model, run.job.params.stream, plan.estimate, outcome.firstContentMs);
    }
    if (plan.role === 'hedge') observer.event({ type: 'hedge', outcome: outcome.kind === 'completed' ? 'won' : 'lost' });
    recordAttempt(run, plan, outcome, elapsedMs);
  }

  /** Counts and plans an attempt. Returns null, and releases the slot, if the attempt cannot start. */
  #plan({ slot, estimate }: Placed, run: ModelRun, role: AttemptPlan['role']): AttemptPlan | null {
    const { encapsulationPool } = this.#options;
    const { latencyTracker } = this.#recorders;
    const { slotRequest, job, span } = run;
    const { provider } = slot;
    const { key } = provider;
    const context = run.clientSignal.aborted || this.#isStopping ? null : this.#context(run, provider);
    const candidate = job.sealed?.candidates.get(providerIdOf(provider));
    run.attemptCount++;
    if (context === null || key === null) {
      slot.release();
      return null;
    }
    const plan: AttemptPlan = {
      slot,
      context,
      encapsulate: (): Encapsulation => encapsulationPool.take(key.publicKey),
      ...(candidate === undefined ? {} : { candidate }),
      estimate,
      terminalEvents: job.terminalEvents,
      bodyMember: job.bodyMember,
      tokenMs: expectedTokenMs(estimate, slotRequest.work),
      fetchedImages: job.fetchedImages,
      maxImageTokens: visionOfferOf(provider, job.params.model)?.max_image_tokens ?? 0,
      otherJobCount: provider.usedSlots - 1,
      role,
      route: { model: job.params.model, fallbackReason: run.fallbackReason, preferences: run.routing?.preferences ?? null },
      lateAfterMs: latencyTracker.lateAfterMs(slotRequest.model, job.params.stream, estimate),
      silentAfterMs: latencyTracker.silentAfterMs(estimate),
    };
    const attributes = { 'inference.role': role, 'inference.provider_id': providerIdOf(provider) };
    run.attemptSpans.set(plan, span.child('inference.attempt', attributes));
    return plan;
  }

  /** Terms of the job for a provider. Null if the provider has no usable sealing key, or its offer does not suit the job. */
  #context({ job }: ModelRun, provider: ProviderConnection): JobContext | null {
    const { now, timings, cacheScopes } = this.#options;
    // The provider may have changed its offer since the placement excluded unsuitable providers.
    if (!mayGenerateImages(job, imageOfferOf(provider, job.params.model))) return null;
    const maxImages = visionOfferOf(provider, job.params.model)?.max_images ?? 0;
    if (job.inputImages !== null && job.inputImages.count > maxImages) return null;
    const keyId = sealingKeyOf(job, provider);
    if (keyId === null) return null;
    const providerId = providerIdOf(provider);
    return jobContext(job, {
      providerId,
      keyId,
      cacheScope: job.sealed === null ? cacheScopes.scope(job.accountId, providerId) : null,
      now: now(),
      lifetimeMs: timings.contextMs,
    });
  }

  #notStarted(provider: ProviderConnection, run: ModelRun): NextStep {
    const { clientSignal, attemptRecords, attemptCount, slotRequest, unfitProviders } = run;
    const isStopped = clientSignal.aborted || this.#isStopping;
    const { error, reason } = outcomePolicy({ kind: isStopped ? 'stopped' : notUsable(run.job, provider) });
    const role = attemptCount === 1 ? 'first' : 'retry';
    attemptRecords.push({ providerId: providerIdOf(provider), role, outcome: isStopped ? 'stopped' : reason, ms: 0 });
    const summary = attemptSummary(provider, run);
    if (clientSignal.aborted) return { kind: 'done', outcome: clientDisconnected(summary) };
    if (isStopped) return { kind: 'done', outcome: failed(summary, error, reason) };
    slotRequest.exclude.add(providerIdOf(provider));
    if (reason === UNFIT_FOR_IMAGES) unfitProviders.add(providerIdOf(provider));
    return { kind: 'retry', outcome: failed(summary, error, reason) };
  }

  /**
   * For a random share of refused sealed requests, reserves a slot at a second candidate, because the coordinator cannot read the reason.
   *
   * Returns null if the first refusal is final.
   */
  async #reserveConfirmation(run: ModelRun): Promise<Placed | null> {
    const { refusingProvider, slotRequest, attemptRecords } = run;
    if (refusingProvider !== null || !this.canRetry(run) || this.#options.random() >= CONFIRMED_SHARE) return null;
    const exclude = new Set([...slotRequest.exclude, ...attemptRecords.map(({ providerId }) => providerId)]);
    return this.#options.placements.placeOnIdleProvider({ ...slotRequest, exclude });
  }

  #retryToConfirm(second: Placed, provider: ProviderConnection, run: ModelRun, summary: AttemptSummary): NextStep {
    run.delivery.withdraw();
    run.refusingProvider = provider;
    run.reservedSlot = second;
    run.slotRequest.exclude.add(providerIdOf(provider));
    return { kind: 'retry', outcome: failed(summary, apiError('provider_failed'), 'refusal_unconfirmed') };
  }

  /** Delivers a refusal free of charge. Releases the reservation first, so that the client sees its full balance afterwards. */
  async #deliverRefusal(signed: SignedParts, { bill, clientSignal, delivery }: ModelRun, summary: AttemptSummary): Promise<JobOutcome> {
    await bill.close();
    if (clientSignal.aborted) return clientDisconnected(summary);
    delivery.deliver(signed, microUsd(0));
    return { kind: 'refused', signed, billed: null, ...summary };
  }

  async #conclude(plan: AttemptPlan, outcome: AttemptOutcome, run: ModelRun): Promise<NextStep> {
    if (outcome.kind === 'completed') return this.#concludeCompleted(plan, outcome, run);
    // `recordResult` reads the duration of overtaken attempts only, and an overtaken attempt never decides the job.
    recordResult(plan, outcome, 0, run, this.#recorders);
    const summary = attemptSummary(plan.slot.provider, run);
    if (run.clientSignal.aborted) return { kind: 'done', outcome: clientDisconnected(summary) };
    const { error, reason, retry } = outcomePolicy(blamesClient(outcome) ? refusalResult(run) : outcome);
    return { kind: retry ? 'retry' : 'done', outcome: failed(summary, error, reason) };
  }

  /** Settles and delivers a completed answer, unless its verification fails. */
  async #concludeCompleted(plan: AttemptPlan, completed: CompletedAttempt, run: ModelRun): Promise<NextStep> {
    const { provider } = plan.slot;
    const { delivery, clientSignal, slotRequest } = run;
    const summary = attemptSummary(provider, run);
    const settled = await settleAnswer(completed, plan, run, this.#options.onImageStoreError);
    if (settled.kind === 'refused') {
      const second = await this.#reserveConfirmation(run);
      if (second !== null) return this.#retryToConfirm(second, provider, run, summary);
      return { kind: 'done', outcome: await this.#deliverRefusal(settled.signed, run, summary) };
    }
    if (settled.kind !== 'rejected') return { kind: 'done', outcome: settled };
    const { result } = settled;
    recordResult(plan, result, completed.elapsedMs, run, this.#recorders);
    const { error, reason, retry } = outcomePolicy(result);
    const problem = result.kind === 'unverified' ? { problem: result.problem } : {};
    const end = { ...failed(summary, error, reason), ...problem };
    if (!retry || delivery.isCommitted || clientSignal.aborted) return { kind: 'done', outcome: end };
    // No byte was sent to the client yet.
    delivery.withdraw();
    slotRequest.exclude.add(providerIdOf(provider));
    return { kind: 'retry', outcome: end };
  }
}

function takeReservedSlot(run: ModelRun): Placed | null {
  const { reservedSlot } = run;
  run.reservedSlot = null;
  return reservedSlot;
}

/** Why {@link AttemptRunner} made no job context for this provider. */
function notUsable(job: JobRequest, provider: ProviderConnection): 'key_expired' | 'unfit_for_images' | 'stale_key' {
  if (job.sealed === null) return 'key_expired';
  return mayGenerateImages(job, imageOfferOf(provider, job.params.model)) ? 'stale_key' : 'unfit_for_images';
}

/** Id of the sealing key: the provider's newest, or the client's choice for a sealed request, if the provider accepts it. */
function sealingKeyOf({ sealed }: JobRequest, provider: ProviderConnection): KeyId | null {
  if (sealed === null) return provider.key?.keyId ?? null;
  const candidate = sealed.candidates.get(providerIdOf(provider));
  const isUsable =
    candidate !== undefined &&
    provider.registration.e2eVersions.includes(sealed.context.v) &&
    provider.acceptedKeyIds.includes(candidate.keyId);
  return isUsable ? candidate.keyId : null;
}

/** The slot request, without the providers of running attempts. */
function withoutProvidersOf(request: SlotRequest, running: readonly AttemptPlan[]): SlotRequest {
  return { ...request, exclude: new Set([...request.exclude, ...running.map(({ slot }) => providerIdOf(slot.provider))]) };
}
