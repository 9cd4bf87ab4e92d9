/**
 * Runs a job from the client's request to its verified and settled answer. Before anything is committed, a provider's failure
 * is another provider's chance, a bounded number of times; what was not verified is neither passed off as an answer nor billed.
 */
import { type ApiError, apiError, modelTypeOf } from '@inference/formats';
import type { JobContext, ModelType, ProviderId, TrustLevel } from '@inference/protocol';
import type { Encapsulation } from '@inference/protocol/crypto';
import { type DrainDemand, namesProvider } from '@inference/scheduler';
import type { RecentlySeenModels } from '../providers/placement/recently-seen-models.js';
import { imageOfferOf, type ProviderRegistry } from '../providers/provider-registry.js';
import type { OnlineSession } from '../providers/session/provider-session.js';
import type { Outcome } from './attempt/attempt.js';
import { HedgeBudget } from './attempt/hedge-budget.js';
import { type Entrant, Race } from './attempt/hedged-request.js';
import { Punctuality } from './attempt/latency-tracker.js';
import type { Encapsulations } from './attempt/sealing/encapsulation-pool.js';
import { tokenMsOf } from './attempt/stall-budget.js';
import type { Delivery } from './delivery/delivery.js';
import type { JobObserver } from './job-observer.js';
import { note, providerOf, type Run, triedOn } from './job-run.js';
import { type JobTimings, MAX_ATTEMPTS } from './job-timings.js';
import { type TraceSpan, UNTRACED } from './job-trace.js';
import type { ImageSupply } from './queue/image-supply.js';
import type { Seated, SeatRefusal, SeatRequest, WaitingRoom } from './queue/request-queue.js';
import type { CacheScopes } from './request/cache-scopes.js';
import { makesImages } from './request/image-job.js';
import { expectedWork, type JobRequest, jobContext } from './request/job-request.js';
import type { Billing } from './settlement/billing.js';
import { holdAgainst, type Parties } from './settlement/consequences.js';
import { EngineFailures } from './settlement/engine-failures.js';
import { failed, type JobEnd, UNTRIED, unseated, unserved } from './settlement/job-end.js';
import { isClientsFault, isFailure, judgeFailure } from './settlement/outcome-policy.js';
import { Refusals, rulingOn } from './settlement/refusals.js';
import { settleAnswer } from './settlement/settle-answer.js';

export interface JobRunnerOptions {
  readonly fleet: ProviderRegistry;
  readonly waitingRoom: WaitingRoom;
  readonly expected: Pick<RecentlySeenModels, 'has'>;
  readonly imageSupply: ImageSupply;
  readonly billing: Billing;
  readonly timings: JobTimings;
  /** Second attempts beside late ones, in percent of the placements; 0: none. */
  readonly hedgePercent: number;
  /** Least trust that a model asks of machines, or null: any. */
  readonly trustFloor: (model: string) => TrustLevel | null;
  readonly cacheScopes: CacheScopes;
  readonly encapsulations: Pick<Encapsulations, 'take'>;
  readonly now: () => number;
  readonly observer: JobObserver;
  /** Images that were made and verified could not be put where clients fetch them. */
  readonly onKeepFailed: (error: unknown) => void;
}

/** Reasons of machines that went in the middle of it, and may come again. */
const LEFT: ReadonlySet<string> = new Set(['connection_lost', 'draining', 'away']);

/** Longest wait for a second machine when a proved one has refused, in milliseconds. */
const SECOND_OPINION_MS = 2000;

type Step = { readonly done: JobEnd } | { readonly retry: JobEnd };

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #races = new Set<Race>();
  readonly #runs = new Set<Run>();
  readonly #hedges: HedgeBudget;
  /** Who hears of what an attempt came to. */
  readonly #parties: Parties;
  #running = 0;
  #stopping = false;
  readonly #idle: (() => void)[] = [];

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#hedges = new HedgeBudget(options.hedgePercent);
    this.#parties = {
      fleet: options.fleet,
      punctuality: new Punctuality(options.timings),
      engineFailures: new EngineFailures(options),
      refusals: new Refusals(options),
    };
  }

  /** Runs a job and answers its client through the delivery. `gone` is aborted when the client goes away. Never rejects for a provider's fault. */
  async run(job: JobRequest, delivery: Delivery, gone: AbortSignal, span: TraceSpan = UNTRACED): Promise<JobEnd> {
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

  /** Ends what runs, because the coordinator stops. Clients are told, in the stream when it has begun. */
  stop(): void {
    this.#stopping = true;
    for (const race of [...this.#races]) race.stop();
  }

  /** What is reserved is settled or released before the client hears of the end, so that it can go on at once with what is left. */
  async #runPaid(job: JobRequest, delivery: Delivery, gone: AbortSignal, span: TraceSpan): Promise<JobEnd> {
    const { fleet, expected, billing, trustFloor, timings, now } = this.#options;
    const { model, stream } = job.facts;
    // For image jobs somebody was found, or waited for, before.
    if (job.images === null && !fleet.serves(model)) {
      return unserved(model, expected.has(model), () => fleet.listedNames());
    }
    const wanted = modelTypeOf(job.endpoint);
    if (job.images === null && !fleet.isOfType(model, wanted)) return failed(UNTRIED, otherType(fleet, model, wanted), 'other_model_type');
    fleet.placementReports.requestReceived(model);
    const named = namedBy(job, fleet);
    if (named === 'ambiguous') return failed(UNTRIED, ambiguousSerial(), 'ambiguous_serial');
    const bill = billing.open(job, fleet.contextLength(model, named));
    try {
      const reserving = span.part('inference.reservation');
      const refusal = await bill.reserve();
      reserving.end({}, refusal?.reason ?? null);
      if (refusal !== null) return failed(UNTRIED, refusal.error, refusal.reason);
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
      const kept = { tries: [], attempts: new Map(), engines: new Map<ProviderId, boolean>(), refusals: [], begun: 0, waitedAfter: null };
      const run: Run = { job, delivery, bill, gone, request, deadline: now() + timings.overallMs, span, ...kept };
      this.#runs.add(run);
      const end = await this.#tryProviders(run).finally(() => this.#runs.delete(run));
      this.#parties.engineFailures.settle(run, end.kind !== 'failed');
      this.#parties.refusals.settle(run, end);
      return end;
    } finally {
      await bill.close();
    }
  }

  async #tryProviders(run: Run): Promise<JobEnd> {
    const { waitingRoom, timings, now, observer } = this.#options;
    const { trustFloor } = run.job;
    let last: JobEnd | null = null;
    /** The refusal of a proved machine: what the client sees unless another machine answers or proves it wrong. */
    let believed: JobEnd | null = null;
    for (;;) {
      const { images } = run.job;
      const queueMs = images === null ? timings.queueMs : Math.max(timings.queueMs, images.waitUntil - now());
      const waitMs = Math.min(believed === null ? queueMs : SECOND_OPINION_MS, run.deadline - now());
      const askedAt = performance.now();
      this.#passOverUnfit(run);
      const placing = run.span.part('inference.placement');
      const request = run.begun === 0 ? run.request : { ...run.request, retried: true, loadedOnly: believed !== null };
      const seat = await waitingRoom.seat(request, waitMs, run.gone);
      const outcome = seat.kind === 'seated' ? seat.why : seat.reason;
      placing.end({ 'inference.outcome': outcome }, seat.kind === 'refused' ? outcome : null);
      observer.event({ type: 'placed', outcome, waitMs: performance.now() - askedAt });
      if (seat.kind === 'refused') {
        if (believed !== null && seat.reason !== 'aborted') return believed;
        const supplied = await this.#supplied(run, last, seat.reason);
        if (supplied === 'again') continue;
        if (supplied === 'nobody') return failed(triedOn(last?.session ?? null, run), apiError('no_provider'), 'no_image_provider');
        return unseated(seat, {
          clientGone: run.gone.aborted,
          trustFloor,
          namedBy: run.job.providerId === null ? 'serial' : 'id',
          tried: triedOn(last?.session ?? null, run),
          last,
        });
      }
      const step = await this.#tryOn(seat, run);
      if ('done' in step) return step.done;
      last = step.retry;
      const refusal = run.refusals.at(-1);
      if (refusal?.isProved === true && !refusal.isLie && refusal.session === last.session) believed = last;
      const retried = this.#mayTryAnother(run);
      if (last.kind === 'failed') observer.event({ type: 'attempt_failed', reason: last.reason, retried });
      if (!retried) return believed ?? last;
    }
  }

  /** Machines with other sizes of the same image model get no part in the job. */
  #passOverUnfit({ job: { images, facts }, request }: Run): void {
    if (images === null) return;
    const fits = (offer: Parameters<typeof makesImages>[0]): boolean => makesImages(offer, images, images.pixels);
    for (const providerId of this.#options.fleet.unfitForImages(facts.model, fits)) request.exclude.add(providerId);
  }

  /**
   * Image jobs wait when the last of those who could make them has gone (spec: image rule), unless it was its answer that was
   * bad. `again`: somebody is here who may be asked; null: that is not how this job stands.
   */
  async #supplied(run: Run, last: JobEnd | null, reason: SeatRefusal): Promise<'again' | 'nobody' | null> {
    const { imageSupply, now } = this.#options;
    const { job, request, deadline, gone, begun } = run;
    const { images, facts } = job;
    if (images === null || begun >= MAX_ATTEMPTS || run.waitedAfter === begun) return null;
    if (reason !== 'none_routable' && reason !== 'all_failed') return null;
    const isLost = last === null || (last.kind === 'failed' && LEFT.has(last.reason));
    if (!isLost) return null;
    run.waitedAfter = begun;
    const waitMs = Math.min(images.waitUntil, deadline) - now();
    const match = await imageSupply.wait({ model: facts.model, image: images, accountId: job.accountId, mayUse: () => true }, waitMs, gone);
    // The same machine may have come back.
    if (last !== null && last.session !== null) request.exclude.delete(providerOf(last.session));
    if (gone.aborted || match.kind === 'gone') return null;
    return match.kind === 'made' && match.pixels === images.pixels ? 'again' : 'nobody';
  }

  #mayTryAnother({ begun, delivery, deadline, gone }: Run): boolean {
    return begun < MAX_ATTEMPTS && !delivery.committed && this.#options.now() < deadline && !this.#stopping && !gone.aborted;
  }

  /** Tries the job on the provider of a seat, and on a second one when that is late. */
  async #tryOn(seat: Seated, run: Run): Promise<Step> {
    const { waitingRoom, observer } = this.#options;
    const entrant = this.#entrant(seat, run, run.begun === 0 ? 'first' : 'retry');
    if (entrant === null) return this.#notBegun(seat.slot.session, run);
    this.#hedges.placed();
    const race = this.#raceOf(run);
    const recall = (): void => race.recall();
    run.gone.addEventListener('abort', recall);
    this.#races.add(race);
    try {
      race.enter(entrant);
      const { entrant: decisive, outcome, elapsedMs } = await race.finish;
      if (outcome.kind === 'completed') {
        waitingRoom.served(run.request.model, outcome.elapsedMs);
        this.#parties.punctuality.observe(run.request.model, run.job.facts.stream, decisive.estimate, outcome.firstContentMs);
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
  #entrant({ slot, estimate }: Seated, run: Run, role: Entrant['role']): Entrant | null {
    const { session } = slot;
    const { key } = session;
    const context = run.gone.aborted || this.#stopping ? null : this.#context(run.job, session);
    run.begun++;
    if (context !== null && key !== null) {
      const tokenMs = tokenMsOf(estimate, run.request.work);
      const encapsulate = (): Encapsulation => this.#options.encapsulations.take(key.publicKey);
      const entrant = { slot, context, encapsulate, estimate, tokenMs, otherJobs: session.jobs.used - 1, role };
      run.attempts.set(
        entrant,
        run.span.part('inference.attempt', { 'inference.role': role, 'inference.provider_id': providerOf(session) }),
      );
      return entrant;
    }
    slot.release();
    return null;
  }

  #context(job: JobRequest, session: OnlineSession): JobContext | null {
    const { now, timings, cacheScopes } = this.#options;
    const { images, facts } = job;
    // It came, or changed its offer, since those that do not fit were passed over.
    if (images !== null && !makesImages(imageOfferOf(session, facts.model), images, images.pixels)) return null;
    const cacheScope = cacheScopes.scope(job.accountId, providerOf(session));
    return jobContext(job, session, { cacheScope, now: now(), lifetimeMs: timings.contextMs });
  }

  #notBegun(session: OnlineSession, run: Run): Step {
    const { providerId } = session.registration.identity;
    const reason = run.gone.aborted || this.#stopping ? 'stopped' : 'key_expired';
    run.tries.push({ providerId, role: run.begun === 1 ? 'first' : 'retry', end: reason, ms: 0 });
    const tried = triedOn(session, run);
    if (run.gone.aborted) return { done: { kind: 'client_gone', billed: null, ...tried } };
    if (this.#stopping) return { done: failed(tried, apiError('shutting_down'), 'shutting_down') };
    run.request.exclude.add(providerId);
    return { retry: failed(tried, apiError('no_provider'), reason) };
  }

  #raceOf(run: Run): Race {
    const { waitingRoom, timings, observer } = this.#options;
    const { job, request, delivery } = run;
    const { model } = request;
    const { stream } = job.facts;
    const besides = (running: readonly Entrant[]): SeatRequest => {
      return { ...request, exclude: new Set([...request.exclude, ...running.map(({ slot }) => providerOf(slot.session))]) };
    };
    return new Race(delivery, {
      timings,
      body: job.body,
      lateAfterMs: ({ estimate }) => this.#parties.punctuality.lateAfterMs(model, stream, estimate),
      silentAfterMs: ({ estimate }) => this.#parties.punctuality.silentAfterMs(estimate),
      couldMove: (running) => this.#mayTryAnother(run) && waitingRoom.hasSpare(besides(running)),
      second: (running) => {
        if (namesProvider(request) || !this.#hedges.available || !this.#mayTryAnother(run)) return null;
        const seat = waitingRoom.takeSpare(besides(running));
        if (seat === null) return null;
        this.#hedges.spend();
        const entrant = this.#entrant(seat, run, 'hedge');
        if (entrant !== null) observer.event({ type: 'hedge', outcome: 'sent' });
        return entrant;
      },
      ended: (entrant, outcome, elapsedMs) => {
        if (entrant.role === 'hedge') observer.event({ type: 'hedge', outcome: 'lost' });
        if (isFailure(outcome)) observer.event({ type: 'attempt_failed', reason: judgeFailure(outcome).reason, retried: true });
        note(run, entrant, outcome, elapsedMs);
        holdAgainst(entrant, outcome, elapsedMs, run, this.#parties);
      },
    });
  }

  async #conclude(entrant: Entrant, outcome: Outcome, run: Run): Promise<Step> {
    const { session } = entrant.slot;
    const tried = triedOn(session, run);
    const clientGone: JobEnd = { kind: 'client_gone', billed: null, ...tried };
    switch (outcome.kind) {
      case 'completed': {
        const end = await settleAnswer(outcome, entrant, run, this.#options);
        // What nobody has read yet can be made anew by someone honest.
        if (end.kind !== 'failed' || run.delivery.committed || run.gone.aborted) return { done: end };
        run.delivery.withdraw();
        run.request.exclude.add(providerOf(session));
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
        holdAgainst(entrant, outcome, 0, run, this.#parties);
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
function strictest(ofModel: TrustLevel | null, ofClient: TrustLevel | null): Pick<SeatRequest, 'trustFloor' | 'ownFloor'> {
  const trustFloor = ofClient === 'hardware' ? ofClient : ofModel;
  return { trustFloor, ownFloor: trustFloor !== ofModel };
}

/** Which machine the client names. A serial number that one provider proves stands for that provider, whoever claims it meanwhile. */
function namedBy(
  { facts, providerId }: JobRequest,
  fleet: ProviderRegistry,
): Pick<SeatRequest, 'providerSerial' | 'providerId'> | 'ambiguous' {
  const { providerSerial } = facts;
  if (providerSerial === null || providerId !== null) return { providerSerial, providerId };
  const bearer = fleet.resolveSerial(providerSerial);
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
  const is = fleet.isOfType(model, 'image') ? 'images' : fleet.isOfType(model, 'embedding') ? 'vectors' : 'text';
  const message = {
    images: 'This model makes images. Use it at /v1/images/generations.',
    vectors: 'This model makes vectors. Use it at /v1/embeddings.',
    text: `This model writes text and makes no ${wanted === 'image' ? 'images' : 'vectors'}.`,
  }[is];
  return apiError('invalid_request', { param: 'model', message });
}
