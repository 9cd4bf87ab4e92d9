/**
 * `JobRunner` runs a client's job to its end: checks the requested models, reserves the maximum cost, and tries the models in order.
 *
 * All inference endpoints use it, through `routes/inference/run-job.ts`. `AttemptRunner` makes the attempts with one model.
 */
import { type ApiError, apiError, COULD_NOT_PROCESS, modelTypeOf } from '@inference/formats';
import type { ModelType, ProviderId, TrustLevel, VisionOffer } from '@inference/protocol';
import type { DrainDemand } from '@inference/scheduler';
import type { RecentlySeenModels } from '../providers/placement/recently-seen-models.js';
import { WaitGroup } from '../wait-group.js';
import { AttemptRunner, type AttemptRunnerOptions } from './attempt/attempt-runner.js';
import type { Delivery } from './delivery/delivery.js';
import { NO_TRACE, type TraceSpan } from './job-observer.js';
import type { ModelRun } from './model-run.js';
import type { NetworkModels, Placements } from './placements.js';
import type { NotPlacedReason, SlotRequest } from './queue/request-queue.js';
import { expectedWork, type InputImages, type JobRequest, withModel } from './request/job-request.js';
import {
  type AmbiguousName,
  capabilityFilter,
  fallbackRouting,
  type JobRouting,
  maxPriceProblem,
  resolveRouting,
} from './request/job-routing.js';
import type { Billing } from './settlement/billing.js';
import { type AttemptRecord, type FailedJob, failed, type JobOutcome, NO_ATTEMPTS, notServed } from './settlement/job-outcome.js';

interface JobRunnerOptions extends AttemptRunnerOptions {
  readonly models: NetworkModels;
  /** Called for each request with a usable model, with the first such model. */
  readonly onRequest: (model: string) => void;
  readonly recentlySeenModels: Pick<RecentlySeenModels, 'has'>;
  readonly billing: Billing;
  /** Minimum trust level that the operator sets for a model, if any. */
  readonly trustFloor: (model: string) => TrustLevel | null;
}

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #attempts: AttemptRunner;
  readonly #modelRuns = new Set<ModelRun>();
  readonly #runningJobs = new WaitGroup();

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#attempts = new AttemptRunner(options);
  }

  /**
   * Runs a job and sends the response through `delivery`. `clientSignal` aborts when the client disconnects.
   *
   * Failures of the provider or the client are outcomes. Rejects after an unexpected error.
   */
  async run(job: JobRequest, delivery: Delivery, clientSignal: AbortSignal, span: TraceSpan = NO_TRACE): Promise<JobOutcome> {
    this.#runningJobs.add();
    try {
      const outcome = await this.#runReserved(job, delivery, clientSignal, span);
      if (outcome.kind === 'failed') delivery.fail(outcome.error);
      return outcome;
    } finally {
      this.#runningJobs.done();
    }
  }

  /**
   * Failure of a job that needs no attempt: no model is usable, or the account has no balance and no usable model is free.
   *
   * Null for other jobs. `isFunded` tells whether the account has a balance. Null means unknown, and counts as funded.
   */
  earlyRefusal(job: JobRequest, isFunded: boolean | null): FailedJob | null {
    const { jobs, refusal } = this.#usableModels(job);
    if (jobs.length === 0) return refusal;
    const { billing } = this.#options;
    if (isFunded !== false || jobs.every(({ endpoint, params }) => billing.isFree(endpoint, params.model))) return null;
    const message = 'Your account has no balance, and this request is not free. Add credits.';
    return failed(NO_ATTEMPTS, apiError('insufficient_quota', { message }), 'insufficient_balance');
  }

  /** Whether the catalogue lists the model, or a provider serves it or did recently. Other names are client text, not to be stored. */
  knowsModel(model: string): boolean {
    const { models, recentlySeenModels } = this.#options;
    return models.serves(model) || recentlySeenModels.has(model);
  }

  /**
   * Number of running jobs that could still retry, by the constraints on their provider.
   *
   * During a shutdown, `ProviderRegistry.drain` keeps suitable providers connected for these jobs.
   */
  drainDemands(): Iterable<DrainDemand> {
    const demands = new Map<string, { -readonly [Name in keyof DrainDemand]: DrainDemand[Name] }>();
    for (const run of this.#modelRuns) {
      if (!this.#attempts.canRetry(run)) continue;
      const { model, providerSerial, providerId = null, trustFloor } = run.slotRequest;
      const key = JSON.stringify([model, providerSerial, providerId, trustFloor]);
      const demand = demands.get(key);
      if (demand === undefined) demands.set(key, { model, providerSerial, providerId, trustFloor, jobs: 1 });
      else demand.jobs++;
    }
    return demands.values();
  }

  /** Number of jobs that have not ended: queued, on a provider, or in a ledger step. */
  get running(): number {
    return this.#runningJobs.count;
  }

  whenIdle(): Promise<void> {
    return this.#runningJobs.wait();
  }

  /** Stops all attempts, for a shutdown. Their clients get an error, inside the stream if it has begun. */
  stop(): void {
    this.#attempts.stop();
  }

  async #runReserved(job: JobRequest, delivery: Delivery, clientSignal: AbortSignal, span: TraceSpan): Promise<JobOutcome> {
    const { models, placements, onRequest, billing, timings, now } = this.#options;
    const { jobs, refusal: unusable } = this.#usableModels(job);
    const [first] = jobs;
    if (first === undefined) return unusable;
    onRequest(first.params.model);
    const named = await namedProvider(job, placements);
    if (named === 'ambiguous') return failed(NO_ATTEMPTS, ambiguousName('provider_serial'), 'ambiguous_serial');
    const routing = job.params.routing === undefined ? null : await resolveRouting(job.params.routing, placements);
    if (routing !== null && 'ambiguous' in routing) return failed(NO_ATTEMPTS, ambiguousName(routing.ambiguous), 'ambiguous_serial');
    const billedModels = jobs.map(({ params: { model } }) => ({
      model,
      contextLength: models.contextLength(model, named),
      // `vision` reads the offers of all providers of the model, so jobs without images skip it.
      maxImageTokens: job.inputImages === null ? 0 : (models.vision(model)?.max_image_tokens ?? 0),
    }));
    const bill = billing.open(job, billedModels);
    try {
      const reserving = span.child('inference.reservation');
      const refusal = await bill.reserve();
      reserving.end({}, refusal?.reason ?? null);
      if (refusal !== null) return failed(NO_ATTEMPTS, refusal.error, refusal.reason);
      const deadline = now() + timings.overallMs;
      const attemptRecords: AttemptRecord[] = [];
      const whyUnusable = first === job ? null : unusable.reason;
      return await this.#runModels(jobs, whyUnusable, (candidate, { fallbackReason, maxQueueMs, attemptCount }) => ({
        job: candidate,
        routing,
        fallbackReason,
        maxQueueMs,
        delivery,
        bill,
        clientSignal,
        slotRequest: this.#slotRequest(candidate, named, candidate === job ? routing : fallbackRouting(routing)),
        unfitProviders: new Set(),
        deadline,
        span,
        attemptSpans: new Map(),
        attemptRecords,
        engineFailures: new Map(),
        refusals: [],
        attemptCount,
        refusingProvider: null,
        reservedSlot: null,
        attemptCountAtImageWait: null,
      }));
    } finally {
      await bill.close();
    }
  }

  /**
   * Tries the models in order until one answers or refuses, or no fallback is allowed.
   *
   * With several models, the first round does not wait in the queue. The second round queues for the models that were busy.
   *
   * `whyUnusable` tells why the requested model is not among `jobs`. Null if it is.
   */
  async #runModels(
    jobs: readonly JobRequest[],
    whyUnusable: string | null,
    newRun: (job: JobRequest, progress: Pick<ModelRun, 'fallbackReason' | 'maxQueueMs' | 'attemptCount'>) => ModelRun,
  ): Promise<JobOutcome> {
    const failures = new Map<JobRequest, FailedJob>();
    let attemptCount = 0;
    let waiting = jobs;
    for (const maxQueueMs of jobs.length === 1 ? ONE_ROUND : TWO_ROUNDS) {
      const busy: JobRequest[] = [];
      for (const job of waiting) {
        const [firstFailure] = failures.values();
        const fallbackReason = whyUnusable ?? (job === jobs[0] ? null : (firstFailure?.reason ?? null));
        const run = newRun(job, { fallbackReason, maxQueueMs, attemptCount });
        this.#modelRuns.add(run);
        const outcome = await this.#attempts.run(run).finally(() => this.#modelRuns.delete(run));
        attemptCount = run.attemptCount;
        if (outcome.kind !== 'failed' || !this.#mayFallBack(outcome, run)) return outcome;
        run.delivery.withdraw();
        failures.set(job, outcome);
        if (BUSY_REASONS.has(outcome.reason)) busy.push(job);
      }
      waiting = busy;
    }
    const [first] = failures.values();
    if (first === undefined) throw new Error('a job has no model');
    return first;
  }

  /** Whether the next model may be tried after this failure. An invalid request counts as invalid for all models. */
  #mayFallBack({ error }: FailedJob, { delivery, clientSignal, deadline }: ModelRun): boolean {
    const isFinal = error.code === 'invalid_request' || error.code === 'shutting_down';
    return !isFinal && !delivery.isCommitted && !clientSignal.aborted && this.#options.now() < deadline;
  }

  /** Copies of the job, one per usable model of the request. `refusal` is the failure of the first model that is not usable. */
  #usableModels(job: JobRequest): { readonly jobs: readonly JobRequest[]; readonly refusal: FailedJob } {
    const { routing } = job.params;
    const fallbacks = routing?.allowsFallbacks === false ? [] : (routing?.fallbackModels ?? []);
    const jobs: JobRequest[] = [];
    const refusals: FailedJob[] = [];
    for (const model of [job.params.model, ...fallbacks]) {
      const refusal = this.#modelRefusal(job, model);
      if (refusal === null) jobs.push(withModel(job, model));
      else refusals.push(refusal);
    }
    // The default is never read: callers read `refusal` only if a model is not usable.
    return { jobs, refusal: refusals[0] ?? notServed(job.params.model, { isExpected: true, returnsInMs: null, listed: () => [] }) };
  }

  /** Failure if the model is not served, has the wrong type, reads too few images, or costs more than `max_price`. Null if usable. */
  #modelRefusal(job: JobRequest, model: string): FailedJob | null {
    const { models, recentlySeenModels, billing } = this.#options;
    // Image jobs have already been matched with a model by `ImageSupply`.
    if (job.images === null && !models.serves(model)) {
      const returnsAt = models.returnsAt(model);
      const returnsInMs = returnsAt === null ? null : returnsAt - this.#options.now();
      return notServed(model, { isExpected: recentlySeenModels.has(model), returnsInMs, listed: () => models.listedNames() });
    }
    const type = modelTypeOf(job.endpoint);
    if (job.images === null && !models.isOfType(model, type)) {
      return failed(NO_ATTEMPTS, wrongTypeError(models, model, type), 'other_model_type');
    }
    const unreadable = job.inputImages === null ? null : tooManyImages(models.vision(model), job.inputImages);
    if (unreadable !== null) return failed(NO_ATTEMPTS, unreadable, 'no_vision');
    const { routing } = job.params;
    const priced = { model, price: billing.price(model), isForImages: job.images !== null };
    const overpriced = routing === undefined ? null : maxPriceProblem(priced, routing);
    return overpriced === null ? null : failed(NO_ATTEMPTS, overpriced, 'max_price');
  }

  #slotRequest(job: JobRequest, named: NamedProvider, routing: JobRouting | null): ModelRun['slotRequest'] {
    const { model, stream } = job.params;
    return {
      model,
      accountId: job.accountId,
      ...named,
      candidates: job.sealed === null ? (routing?.only ?? null) : new Set(job.sealed.candidates.keys()),
      filter: capabilityFilter(routing?.filter ?? null, { choices: job.params.choices ?? 1, images: job.inputImages?.count ?? 0 }),
      sort: routing?.sort ?? null,
      exclude: new Set<ProviderId>(),
      excludedOwners: new Set<string>(),
      image: job.images,
      ...strictest(this.#options.trustFloor(model), job.trustFloor),
      work: expectedWork(job, job.inputImages === null ? 0 : (this.#options.models.vision(model)?.max_image_tokens ?? 0)),
      promptPrefixes: job.promptPrefixes,
      revocable: !stream,
    };
  }
}

/** Maximum queue wait in each round, in milliseconds. Null stands for `JobTimings.queueMs`. */
const ONE_ROUND = [null];
const TWO_ROUNDS = [0, null];

/** Failure reasons that mean that all providers of the model are busy. */
const BUSY_REASONS: ReadonlySet<string> = new Set(['timeout', 'hopeless', 'queue_full'] satisfies NotPlacedReason[]);

type NamedProvider = Pick<SlotRequest, 'providerSerial' | 'providerId'>;

/** The stricter of two minimum trust levels. Providers without a level get no jobs, so only `hardware` restricts further. */
function strictest(ofModel: TrustLevel | null, ofClient: TrustLevel | null): Pick<SlotRequest, 'trustFloor' | 'hasClientFloor'> {
  const trustFloor = ofClient === 'hardware' ? ofClient : ofModel;
  return { trustFloor, hasClientFloor: trustFloor !== ofModel };
}

/** The provider that the client named by id or serial number. Serial numbers resolve as in {@link resolvedProvider}. */
async function namedProvider({ params, providerId }: JobRequest, placements: Placements): Promise<NamedProvider | 'ambiguous'> {
  const { providerSerial } = params;
  if (providerSerial === null || providerId !== null) return { providerSerial, providerId };
  const resolved = await placements.resolveSerial(providerSerial);
  return resolved === 'ambiguous' ? 'ambiguous' : { providerSerial, providerId: resolved };
}

function ambiguousName(param: 'provider_serial' | AmbiguousName['ambiguous']): ApiError {
  const [what, where] =
    param === 'provider_serial'
      ? ['this provider_serial', 'in the X-Inference-Provider-Id header']
      : [`a serial number of ${param}`, 'there'];
  const message = `Several providers claim ${what} and none proves it with a certificate chain. Name one of them by its id ${where}.`;
  return apiError('invalid_request', { param, message });
}

/** Error if no provider of the model reads this many images. */
function tooManyImages(vision: VisionOffer | null, { count, fields }: InputImages): ApiError | null {
  const maxImages = vision?.max_images ?? 0;
  if (count <= maxImages) return null;
  const param = fields[maxImages] ?? 'context.input_images';
  // Coding agents recognize these words, and then continue without the images.
  const reason = maxImages === 0 ? 'This model does not see images.' : `This model reads at most ${maxImages} images in a request.`;
  return apiError('unsupported_parameter', { param, message: `${param}: ${COULD_NOT_PROCESS} ${reason}` });
}

function wrongTypeError(models: NetworkModels, model: string, requested: ModelType): ApiError {
  const output = models.isOfType(model, 'image') ? 'images' : models.isOfType(model, 'embedding') ? 'vectors' : 'text';
  const message = {
    images: 'This model makes images. Use it at /v1/images/generations.',
    vectors: 'This model makes vectors. Use it at /v1/embeddings.',
    text: `This model writes text and makes no ${requested === 'image' ? 'images' : 'vectors'}.`,
  }[output];
  return apiError('invalid_request', { param: 'model', message });
}
