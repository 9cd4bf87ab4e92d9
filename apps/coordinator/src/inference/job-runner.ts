/**
 * `JobRunner` runs a client's job to its end: checks the models, reserves the maximum cost, and runs attempts with each model.
 *
 * Called by the routes of all inference endpoints, images and sealed requests included.
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
  /** Called with the first usable model of each request. */
  readonly onRequest: (model: string) => void;
  readonly recentlySeenModels: Pick<RecentlySeenModels, 'has'>;
  readonly billing: Billing;
  /** Minimum trust level of a model's providers, if any. */
  readonly trustFloor: (model: string) => TrustLevel | null;
}

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #attempts: AttemptRunner;
  readonly #runs = new Set<ModelRun>();
  readonly #running = new WaitGroup();

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#attempts = new AttemptRunner(options);
  }

  /**
   * Runs a job and answers its client. `clientSignal` aborts when the client disconnects. Provider failures are outcomes, not rejections.
   */
  async run(job: JobRequest, delivery: Delivery, clientSignal: AbortSignal, span: TraceSpan = NO_TRACE): Promise<JobOutcome> {
    this.#running.add();
    try {
      const outcome = await this.#runReserved(job, delivery, clientSignal, span);
      if (outcome.kind === 'failed') delivery.fail(outcome.error);
      return outcome;
    } finally {
      this.#running.done();
    }
  }

  /**
   * Outcome of a job that would fail without an attempt, because no model is usable, or none is free and the account has no balance.
   *
   * Null for other jobs. Makes no reservation. `isFunded`: the account has a balance; null if unknown, so that the reservation decides.
   */
  earlyRefusal(job: JobRequest, isFunded: boolean | null): FailedJob | null {
    const { jobs, refusal } = this.#usableModels(job);
    if (jobs.length === 0) return refusal;
    const { billing } = this.#options;
    if (isFunded !== false || jobs.every(({ endpoint, params }) => billing.isFree(endpoint, params.model))) return null;
    const message = 'Your account has no balance, and this request is not free. Add credits.';
    return failed(NO_ATTEMPTS, apiError('insufficient_quota', { message }), 'insufficient_balance');
  }

  /** Whether a provider serves the model, or will probably do so again. Other names are client text that must not be stored. */
  knowsModel(model: string): boolean {
    const { models, recentlySeenModels } = this.#options;
    return models.serves(model) || recentlySeenModels.has(model);
  }

  /** Placements that running jobs may still need if their provider fails, by constraints. A shutdown retains providers for these. */
  drainDemands(): Iterable<DrainDemand> {
    const demands = new Map<string, { -readonly [Name in keyof DrainDemand]: DrainDemand[Name] }>();
    for (const run of this.#runs) {
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
    return this.#running.count;
  }

  /** Resolves when all jobs have ended. */
  whenIdle(): Promise<void> {
    return this.#running.wait();
  }

  /** Stops all attempts, for a shutdown. Clients get an error, inside the stream if it has begun. */
  stop(): void {
    this.#attempts.stop();
  }

  /** Runs a job under a reservation of its maximum cost. */
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
    const choices = jobs.map(({ params: { model } }) => ({
      model,
      contextLength: models.contextLength(model, named),
      // Reads the offers of all providers of the model, so only jobs with images do this.
      maxImageTokens: job.inputImages === null ? 0 : (models.vision(model)?.max_image_tokens ?? 0),
    }));
    const bill = billing.open(job, choices);
    try {
      const reserving = span.child('inference.reservation');
      const refusal = await bill.reserve();
      reserving.end({}, refusal?.reason ?? null);
      if (refusal !== null) return failed(NO_ATTEMPTS, refusal.error, refusal.reason);
      const deadline = now() + timings.overallMs;
      const attemptRecords: AttemptRecord[] = [];
      const reason = first === job ? null : unusable.reason;
      return await this.#runModels(jobs, reason, (candidate, { fallbackReason, maxQueueMs, attemptCount }) => ({
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
   * Tries the models in order. With several models, the first round does not queue. Busy models get a second round that does.
   *
   * `reason` tells why the requested model is not usable, if so.
   */
  async #runModels(
    jobs: readonly JobRequest[],
    reason: string | null,
    begin: (job: JobRequest, progress: Pick<ModelRun, 'fallbackReason' | 'maxQueueMs' | 'attemptCount'>) => ModelRun,
  ): Promise<JobOutcome> {
    const failures = new Map<JobRequest, FailedJob>();
    let attemptCount = 0;
    let waiting = jobs;
    for (const maxQueueMs of jobs.length === 1 ? ONE_ROUND : TWO_ROUNDS) {
      const busy: JobRequest[] = [];
      for (const job of waiting) {
        const [firstFailure] = failures.values();
        const fallbackReason = reason ?? (job === jobs[0] ? null : (firstFailure?.reason ?? null));
        const run = begin(job, { fallbackReason, maxQueueMs, attemptCount });
        this.#runs.add(run);
        const outcome = await this.#attempts.run(run).finally(() => this.#runs.delete(run));
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

  /** Whether a fallback model may be tried. A request that is invalid for one model is invalid for all. */
  #mayFallBack({ error }: FailedJob, { delivery, clientSignal, deadline }: ModelRun): boolean {
    const isFinal = error.code === 'invalid_request' || error.code === 'shutting_down';
    return !isFinal && !delivery.isCommitted && !clientSignal.aborted && this.#options.now() < deadline;
  }

  /** Copies of the job, one per usable model of the request. `refusal` is for the first model that is not usable. */
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
    // Callers read `refusal` only if a model is not usable.
    return { jobs, refusal: refusals[0] ?? notServed(job.params.model, { isExpected: true, returnsInMs: null, listed: () => [] }) };
  }

  /** Error if the model is not served, has the wrong type, reads too few images, or costs more than `max_price`. */
  #modelRefusal(job: JobRequest, model: string): FailedJob | null {
    const { models, recentlySeenModels, billing } = this.#options;
    // Image jobs waited for a provider earlier.
    if (job.images === null && !models.serves(model)) {
      const returnsAt = models.returnsAt(model);
      const returnsInMs = returnsAt === null ? null : returnsAt - this.#options.now();
      return notServed(model, { isExpected: recentlySeenModels.has(model), returnsInMs, listed: () => models.listedNames() });
    }
    const type = modelTypeOf(job.endpoint);
    if (job.images === null && !models.isOfType(model, type)) {
      return failed(NO_ATTEMPTS, otherType(models, model, type), 'other_model_type');
    }
    const unreadable = job.inputImages === null ? null : visionProblem(models.vision(model), job.inputImages);
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

/** Maximum queue wait of each round, in milliseconds. Null stands for the default. */
const ONE_ROUND = [null];
const TWO_ROUNDS = [0, null];

/** Failure reasons that mean that all providers of the model are busy. */
const BUSY_REASONS: ReadonlySet<string> = new Set(['timeout', 'hopeless', 'queue_full'] satisfies NotPlacedReason[]);

type NamedProvider = Pick<SlotRequest, 'providerSerial' | 'providerId'>;

/** The stricter of two trust levels. Only two levels exist, so `hardware` is stricter. */
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
function visionProblem(vision: VisionOffer | null, { count, fields }: InputImages): ApiError | null {
  const maxImages = vision?.max_images ?? 0;
  if (count <= maxImages) return null;
  const param = fields[maxImages] ?? 'context.input_images';
  // Coding agents recognize these words, and then continue without the images.
  const reason = maxImages === 0 ? 'This model does not see images.' : `This model reads at most ${maxImages} images in a request.`;
  return apiError('unsupported_parameter', { param, message: `${param}: ${COULD_NOT_PROCESS} ${reason}` });
}

/** Error for a model of another type than the endpoint requires. */
function otherType(models: NetworkModels, model: string, requested: ModelType): ApiError {
  const output = models.isOfType(model, 'image') ? 'images' : models.isOfType(model, 'embedding') ? 'vectors' : 'text';
  const message = {
    images: 'This model makes images. Use it at /v1/images/generations.',
    vectors: 'This model makes vectors. Use it at /v1/embeddings.',
    text: `This model writes text and makes no ${requested === 'image' ? 'images' : 'vectors'}.`,
  }[output];
  return apiError('invalid_request', { param: 'model', message });
}
