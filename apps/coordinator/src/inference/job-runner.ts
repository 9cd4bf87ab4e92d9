/**
 * Runs a job from the client's request to its verified and settled answer. Before anything is committed, a provider's failure
 * is another provider's chance, a bounded number of times; what was not verified is neither passed off as an answer nor billed.
 */
import { type ApiError, apiError, modelTypeOf } from '@inference/formats';
import type { JobContext, ModelType, ProviderId, TrustLevel } from '@inference/protocol';
import type { Encapsulation } from '@inference/protocol/crypto';
import { type DrainDemand, namesProvider } from '@inference/scheduler';
import type { RecentlySeenModels } from '../providers/placement/recently-seen-models.js';
import { imageOfferOf } from '../providers/placement/served-models.js';
import type { ProviderConnection } from '../providers/provider-connection.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { AttemptOutcome } from './attempt/attempt.js';
import { HedgeBudget } from './attempt/hedge-budget.js';
import { type AttemptPlan, HedgedRequest } from './attempt/hedged-request.js';
import { LatencyTracker } from './attempt/latency-tracker.js';
import type { EncapsulationPool } from './attempt/sealing/encapsulation-pool.js';
import { expectedTokenMs } from './attempt/stall-budget.js';
import type { Delivery } from './delivery/delivery.js';
import type { JobObserver } from './job-observer.js';
import { type JobTimings, MAX_ATTEMPTS } from './job-timings.js';
import { type TraceSpan, UNTRACED } from './job-trace.js';
import type { ImageSupply } from './queue/image-supply.js';
import type { NotPlacedReason, Placed, RequestQueue, SlotRequest } from './queue/request-queue.js';
import type { CacheScopes } from './request/cache-scopes.js';
import { makesImages } from './request/image-job.js';
import { expectedWork, type JobRequest, jobContext } from './request/job-request.js';
import { attemptSummary, note, providerOf, type RunningJob } from './running-job.js';
import type { Billing } from './settlement/billing.js';
import { type OutcomeRecorders, recordOutcome } from './settlement/consequences.js';
import { EngineFailures } from './settlement/engine-failures.js';
import { failed, type JobOutcome, NO_ATTEMPTS, notPlaced, notServed } from './settlement/job-outcome.js';
import { isClientsFault, isFailure, judgeFailure } from './settlement/outcome-policy.js';
import { RefusalTracker, rulingOn } from './settlement/refusal-tracker.js';
import { settleAnswer } from './settlement/settle-answer.js';

export interface JobRunnerOptions {
  readonly fleet: ProviderRegistry;
  readonly requestQueue: RequestQueue;
  readonly expected: Pick<RecentlySeenModels, 'has'>;
  readonly imageSupply: ImageSupply;
  readonly billing: Billing;
  readonly timings: JobTimings;
  /** Second attempts beside late ones, in percent of the placements; 0: none. */
  readonly hedgePercent: number;
  /** Least trust that a model asks of machines, or null: any. */
  readonly trustFloor: (model: string) => TrustLevel | null;
  readonly cacheScopes: CacheScopes;
  readonly encapsulationPool: Pick<EncapsulationPool, 'take'>;
  readonly now: () => number;
  readonly observer: JobObserver;
  /** Images that were made and verified could not be put where clients fetch them. */
  readonly onImageStoreError: (error: unknown) => void;
}

/** Reasons of machines that went in the middle of it, and may come again. */
const LEFT: ReadonlySet<string> = new Set(['connection_lost', 'draining', 'away']);

/** Longest wait for a second machine when a proved one has refused, in milliseconds. */
const CONFIRMATION_WAIT_MS = 2000;

type Step = { readonly done: JobOutcome } | { readonly retry: JobOutcome };

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #races = new Set<HedgedRequest>();
  readonly #runs = new Set<RunningJob>();
  readonly #hedges: HedgeBudget;
  /** Who hears of what an attempt came to. */
  readonly #parties: OutcomeRecorders;
  #running = 0;
  #stopping = false;
  readonly #idle: (() => void)[] = [];

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#hedges = new HedgeBudget(options.hedgePercent);
    this.#parties = {
      fleet: options.fleet,
      latencyTracker: new LatencyTracker(options.timings),
      engineFailures: new EngineFailures(options),
      refusals: new RefusalTracker(options),
    };
  }

  /** Runs a job and answers its client through the delivery. `gone` is aborted when the client goes away. Never rejects for a provider's fault. */
  async run(job: JobRequest, delivery: Delivery, gone: AbortSignal, span: TraceSpan = UNTRACED): Promise<JobOutcome> {
    this.#running++;
    try {
      const end = await this.#runPaid(job, delivery, gone, span);
      if (end.kind === 'failed') delivery.fail(end.error);
      return end;
    } finally {
      this.#running--;
      if (this.#running === 0) for (const wake of this.#idle.splice(0)) wake();
    }
  }

  /** What jobs that run may still need when their provider fails, by kind. */
  wanted(): Iterable<DrainDemand> {
    const kinds = new Map<string, { -readonly [Name in keyof DrainDemand]: DrainDemand[Name] }>();
    for (const run of this.#runs) {
      if (!this.#mayTryAnother(run)) continue;
      const { model, providerSerial, providerId = null, trustFloor } = run.request;
      const key = JSON.stringify([model, providerSerial, providerId, trustFloor]);
      const kind = kinds.get(key);
      if (kind === undefined) kinds.set(key, { model, providerSerial, providerId, trustFloor, jobs: 1 });
      else kind.jobs++;
    }
    return kinds.values();
  }

  /** Jobs in the queue or on a provider. */
  get running(): number {
    return this.#running;
  }

  /** Resolves when no job is in the queue or on a provider. */
  whenIdle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Ends what runs, because the coordinator stops. Clients are told, in the stream when it has attemptCount. */
  stop(): void {
    this.#stopping = true;
    for (const race of [...this.#races]) race.stop();
  }

  /** What is reserved is settled or released before the client hears of the end, so that it can go on at once with what is left. */
  async #runPaid(job: JobRequest, delivery: Delivery, gone: AbortSignal, span: TraceSpan): Promise<JobOutcome> {
    const { fleet, expected, billing, trustFloor, timings, now } = this.#options;
    const { model, stream } = job.facts;
    // For image jobs somebody was found, or waited for, before.
    if (job.images === null && !fleet.models.serves(model)) {
      return notServed(model, expected.has(model), () => fleet.models.listedNames());
    }
    const wanted = modelTypeOf(job.endpoint);
    if (job.images === null && !fleet.models.isOfType(model, wanted))
      return failed(NO_ATTEMPTS, otherType(fleet, model, wanted), 'other_model_type');
    fleet.placement.reports.requestReceived(model);
    const named = namedBy(job, fleet);
    if (named === 'ambiguous') return failed(NO_ATTEMPTS, ambiguousSerial(), 'ambiguous_serial');
    const bill = billing.open(job, fleet.models.contextLength(model, named));
    try {
      const reserving = span.part('inference.reservation');
      const refusal = await bill.reserve();
      reserving.end({}, refusal?.reason ?? null);
      if (refusal !== null) return failed(NO_ATTEMPTS, refusal.error, refusal.reason);
      const request = {
        model,
        accountId: job.accountId,
        ...named,
        exclude: new Set<ProviderId>(),
        ...strictest(trustFloor(model), job.trustFloor),
        work: expectedWork(job),
        chain: job.chain,
        revocable: !stream,
      };
      const kept = {
        attemptRecords: [],
        attempts: new Map(),
        engines: new Map<ProviderId, boolean>(),
        refusals: [],
        attemptCount: 0,
        imageWaitAttempt: null,
      };
      const run: RunningJob = { job, delivery, bill, gone, request, deadline: now() + timings.overallMs, span, ...kept };
      this.#runs.add(run);
      const end = await this.#tryProviders(run).finally(() => this.#runs.delete(run));
      this.#parties.engineFailures.settle(run, end.kind !== 'failed');
      this.#parties.refusals.settle(run, end);
      return end;
    } finally {
      await bill.close();
    }
  }

  async #tryProviders(run: RunningJob): Promise<JobOutcome> {
    const { requestQueue, timings, now, observer } = this.#options;
    const { trustFloor } = run.job;
    let last: JobOutcome | null = null;
    /** The refusal of a proved machine: what the client sees unless another machine answers or proves it wrong. */
    let believed: JobOutcome | null = null;
    for (;;) {
      const { images } = run.job;
      const queueMs = images === null ? timings.queueMs : Math.max(timings.queueMs, images.waitUntil - now());
      const waitMs = Math.min(believed === null ? queueMs : CONFIRMATION_WAIT_MS, run.deadline - now());
      const askedAt = performance.now();
      this.#passOverUnfit(run);
      const placing = run.span.part('inference.placement');
      const request = run.attemptCount === 0 ? run.request : { ...run.request, retried: true, loadedOnly: believed !== null };
      const placement = await requestQueue.place(request, waitMs, run.gone);
      const outcome = placement.kind === 'placed' ? placement.why : placement.reason;
      placing.end({ 'inference.outcome': outcome }, placement.kind === 'refused' ? outcome : null);
      observer.event({ type: 'placed', outcome, waitMs: performance.now() - askedAt });
      if (placement.kind === 'refused') {
        if (believed !== null && placement.reason !== 'aborted') return believed;
        const supplied = await this.#supplied(run, last, placement.reason);
        if (supplied === 'again') continue;
        if (supplied === 'nobody') return failed(attemptSummary(last?.provider ?? null, run), apiError('no_provider'), 'no_image_provider');
        return notPlaced(placement, {
          clientGone: run.gone.aborted,
          trustFloor,
          namedBy: run.job.providerId === null ? 'serial' : 'id',
          tried: attemptSummary(last?.provider ?? null, run),
          last,
        });
      }
      const step = await this.#tryOn(placement, run);
      if ('done' in step) return step.done;
      last = step.retry;
      const refusal = run.refusals.at(-1);
      if (refusal?.isProven === true && !refusal.isLie && refusal.provider === last.provider) believed = last;
      const retried = this.#mayTryAnother(run);
      if (last.kind === 'failed') observer.event({ type: 'attempt_failed', reason: last.reason, retried });
      if (!retried) return believed ?? last;
    }
  }

  /** Machines with other sizes of the same image model get no part in the job. */
  #passOverUnfit({ job: { images, facts }, request }: RunningJob): void {
    if (images === null) return;
    const fits = (offer: Parameters<typeof makesImages>[0]): boolean => makesImages(offer, images, images.pixels);
    for (const providerId of this.#options.fleet.placement.unfitForImages(facts.model, fits)) request.exclude.add(providerId);
  }

  /**
   * Image jobs wait when the last of those who could make them has gone (spec: image rule), unless it was its answer that was
   * bad. `again`: somebody is here who may be asked; null: that is not how this job stands.
   */
  async #supplied(run: RunningJob, last: JobOutcome | null, reason: NotPlacedReason): Promise<'again' | 'nobody' | null> {
    const { imageSupply, now } = this.#options;
    const { job, request, deadline, gone, attemptCount } = run;
    const { images, facts } = job;
    if (images === null || attemptCount >= MAX_ATTEMPTS || run.imageWaitAttempt === attemptCount) return null;
    if (reason !== 'none_routable' && reason !== 'all_failed') return null;
    const isLost = last === null || (last.kind === 'failed' && LEFT.has(last.reason));
    if (!isLost) return null;
    run.imageWaitAttempt = attemptCount;
    const waitMs = Math.min(images.waitUntil, deadline) - now();
    const match = await imageSupply.wait({ model: facts.model, image: images, accountId: job.accountId, mayUse: () => true }, waitMs, gone);
    // The same machine may have come back.
    if (last !== null && last.provider !== null) request.exclude.delete(providerOf(last.provider));
    if (gone.aborted || match.kind === 'gone') return null;
    return match.kind === 'made' && match.pixels === images.pixels ? 'again' : 'nobody';
  }

  #mayTryAnother({ attemptCount, delivery, deadline, gone }: RunningJob): boolean {
    return attemptCount < MAX_ATTEMPTS && !delivery.committed && this.#options.now() < deadline && !this.#stopping && !gone.aborted;
  }

  /** Tries the job on the provider of a placement, and on a second one when that is late. */
  async #tryOn(placement: Placed, run: RunningJob): Promise<Step> {
    const { requestQueue, observer } = this.#options;
    const plan = this.#plan(placement, run, run.attemptCount === 0 ? 'first' : 'retry');
    if (plan === null) return this.#notBegun(placement.slot.provider, run);
    this.#hedges.placed();
    const race = this.#raceOf(run);
    const recall = (): void => race.recall();
    run.gone.addEventListener('abort', recall);
    this.#races.add(race);
    try {
      race.enter(plan);
      const { plan: decisive, outcome, elapsedMs } = await race.finish;
      if (outcome.kind === 'completed') {
        requestQueue.served(run.request.model, outcome.elapsedMs);
        this.#parties.latencyTracker.observe(run.request.model, run.job.facts.stream, decisive.estimate, outcome.firstContentMs);
      }
      if (decisive.role === 'hedge') observer.event({ type: 'hedge', outcome: outcome.kind === 'completed' ? 'won' : 'lost' });
      note(run, decisive, outcome, elapsedMs);
      return await this.#conclude(decisive, outcome, run);
    } finally {
      run.gone.removeEventListener('abort', recall);
      this.#races.delete(race);
    }
  }

  /** What an attempt is made with; null and the slot given back when it cannot begin. */
  #plan({ slot, estimate }: Placed, run: RunningJob, role: AttemptPlan['role']): AttemptPlan | null {
    const { provider } = slot;
    const { key } = provider;
    const context = run.gone.aborted || this.#stopping ? null : this.#context(run.job, provider);
    run.attemptCount++;
    if (context !== null && key !== null) {
      const tokenMs = expectedTokenMs(estimate, run.request.work);
      const encapsulate = (): Encapsulation => this.#options.encapsulationPool.take(key.publicKey);
      const plan = { slot, context, encapsulate, estimate, tokenMs, otherJobs: provider.usedSlots - 1, role };
      run.attempts.set(plan, run.span.part('inference.attempt', { 'inference.role': role, 'inference.provider_id': providerOf(provider) }));
      return plan;
    }
    slot.release();
    return null;
  }

  #context(job: JobRequest, provider: ProviderConnection): JobContext | null {
    const { now, timings, cacheScopes } = this.#options;
    const { images, facts } = job;
    // It came, or changed its offer, since those that do not fit were passed over.
    if (images !== null && !makesImages(imageOfferOf(provider, facts.model), images, images.pixels)) return null;
    const cacheScope = cacheScopes.scope(job.accountId, providerOf(provider));
    return jobContext(job, provider, { cacheScope, now: now(), lifetimeMs: timings.contextMs });
  }

  #notBegun(provider: ProviderConnection, run: RunningJob): Step {
    const { providerId } = provider.registration.identity;
    const reason = run.gone.aborted || this.#stopping ? 'stopped' : 'key_expired';
    run.attemptRecords.push({ providerId, role: run.attemptCount === 1 ? 'first' : 'retry', end: reason, ms: 0 });
    const tried = attemptSummary(provider, run);
    if (run.gone.aborted) return { done: { kind: 'client_gone', billed: null, ...tried } };
    if (this.#stopping) return { done: failed(tried, apiError('shutting_down'), 'shutting_down') };
    run.request.exclude.add(providerId);
    return { retry: failed(tried, apiError('no_provider'), reason) };
  }

  #raceOf(run: RunningJob): HedgedRequest {
    const { requestQueue, timings, observer } = this.#options;
    const { job, request, delivery } = run;
    const { model } = request;
    const { stream } = job.facts;
    const besides = (running: readonly AttemptPlan[]): SlotRequest => {
      return { ...request, exclude: new Set([...request.exclude, ...running.map(({ slot }) => providerOf(slot.provider))]) };
    };
    return new HedgedRequest(delivery, {
      timings,
      body: job.body,
      lateAfterMs: ({ estimate }) => this.#parties.latencyTracker.lateAfterMs(model, stream, estimate),
      silentAfterMs: ({ estimate }) => this.#parties.latencyTracker.silentAfterMs(estimate),
      couldMove: (running) => this.#mayTryAnother(run) && requestQueue.hasIdleProvider(besides(running)),
      second: (running) => {
        if (namesProvider(request) || !this.#hedges.available || !this.#mayTryAnother(run)) return null;
        const placement = requestQueue.placeOnIdleProvider(besides(running));
        if (placement === null) return null;
        this.#hedges.spend();
        const plan = this.#plan(placement, run, 'hedge');
        if (plan !== null) observer.event({ type: 'hedge', outcome: 'sent' });
        return plan;
      },
      ended: (plan, outcome, elapsedMs) => {
        if (plan.role === 'hedge') observer.event({ type: 'hedge', outcome: 'lost' });
        if (isFailure(outcome)) observer.event({ type: 'attempt_failed', reason: judgeFailure(outcome).reason, retried: true });
        note(run, plan, outcome, elapsedMs);
        recordOutcome(plan, outcome, elapsedMs, run, this.#parties);
      },
    });
  }

  async #conclude(plan: AttemptPlan, outcome: AttemptOutcome, run: RunningJob): Promise<Step> {
    const { provider } = plan.slot;
    const tried = attemptSummary(provider, run);
    const clientGone: JobOutcome = { kind: 'client_gone', billed: null, ...tried };
    switch (outcome.kind) {
      case 'completed': {
        const end = await settleAnswer(outcome, plan, run, this.#options);
        // What nobody has read yet can be made anew by someone honest.
        if (end.kind !== 'failed' || run.delivery.committed || run.gone.aborted) return { done: end };
        run.delivery.withdraw();
        run.request.exclude.add(providerOf(provider));
        return { retry: end };
      }
      case 'stopped':
      case 'overtaken':
        if (run.gone.aborted) return { done: clientGone };
        return { done: failed(tried, apiError('shutting_down'), 'shutting_down') };
      case 'failed':
      case 'lost':
      case 'timeout':
      case 'unsent':
      case 'violated':
      case 'unsealable': {
        recordOutcome(plan, outcome, 0, run, this.#parties);
        if (run.gone.aborted) return { done: clientGone };
        if (isClientsFault(outcome)) return rulingOn(run, tried);
        const { error, reason, retry } = judgeFailure(outcome);
        const end = failed(tried, error, reason);
        return retry ? { retry: end } : { done: end };
      }
    }
  }
}

/** The levels are two, so that the stricter one is the one that is not the lower. */
function strictest(ofModel: TrustLevel | null, ofClient: TrustLevel | null): Pick<SlotRequest, 'trustFloor' | 'ownFloor'> {
  const trustFloor = ofClient === 'hardware' ? ofClient : ofModel;
  return { trustFloor, ownFloor: trustFloor !== ofModel };
}

/** Which machine the client names. A serial number that one provider proves stands for that provider, whoever claims it meanwhile. */
function namedBy(
  { facts, providerId }: JobRequest,
  fleet: ProviderRegistry,
): Pick<SlotRequest, 'providerSerial' | 'providerId'> | 'ambiguous' {
  const { providerSerial } = facts;
  if (providerSerial === null || providerId !== null) return { providerSerial, providerId };
  const bearer = fleet.placement.resolveSerial(providerSerial);
  if (bearer === 'ambiguous') return 'ambiguous';
  return { providerSerial, providerId: bearer };
}

function ambiguousSerial(): ApiError {
  const message =
    'Several providers claim this provider_serial and none proves it with a certificate chain. Name one of them by its id in the X-Inference-Provider-Id header.';
  return apiError('invalid_request', { param: 'provider_serial', message });
}

/** A model that is served, asked for what it is not for. */
function otherType(fleet: ProviderRegistry, model: string, wanted: ModelType): ApiError {
  const is = fleet.models.isOfType(model, 'image') ? 'images' : fleet.models.isOfType(model, 'embedding') ? 'vectors' : 'text';
  const message = {
    images: 'This model makes images. Use it at /v1/images/generations.',
    vectors: 'This model makes vectors. Use it at /v1/embeddings.',
    text: `This model writes text and makes no ${wanted === 'image' ? 'images' : 'vectors'}.`,
  }[is];
  return apiError('invalid_request', { param: 'model', message });
}
