/**
 * Runs a job from the client's request to its settled outcome: checks the model, reserves the maximum cost, lets the attempts run,
 * and settles or releases the reservation.
 */
import { type ApiError, apiError, modelTypeOf } from '@inference/formats';
import type { ModelType, ProviderId, TrustLevel } from '@inference/protocol';
import type { DrainDemand } from '@inference/scheduler';
import type { RecentlySeenModels } from '../providers/placement/recently-seen-models.js';
import { AttemptRunner, type AttemptRunnerOptions } from './attempt/attempt-runner.js';
import type { Delivery } from './delivery/delivery.js';
import { NO_TRACE, type TraceSpan } from './job-observer.js';
import type { NetworkModels, Placements } from './placements.js';
import type { SlotRequest } from './queue/request-queue.js';
import { expectedWork, type JobRequest } from './request/job-request.js';
import type { RunningJob } from './running-job.js';
import type { Billing } from './settlement/billing.js';
import { failed, type JobOutcome, NO_ATTEMPTS, notServed } from './settlement/job-outcome.js';

interface JobRunnerOptions extends AttemptRunnerOptions {
  readonly models: NetworkModels;
  /** Counts a request for the statistics of a model's demand. */
  readonly onRequest: (model: string) => void;
  readonly expected: Pick<RecentlySeenModels, 'has'>;
  readonly billing: Billing;
  /** Minimum trust level of a model's providers; null: any. */
  readonly trustFloor: (model: string) => TrustLevel | null;
}

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #attempts: AttemptRunner;
  readonly #jobs = new Set<RunningJob>();
  #runningCount = 0;
  readonly #onIdle: (() => void)[] = [];

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#attempts = new AttemptRunner(options);
  }

  /** Runs a job and answers its client through the delivery. `clientSignal` aborts when the client disconnects. Never rejects for a provider's fault. */
  async run(job: JobRequest, delivery: Delivery, clientSignal: AbortSignal, span: TraceSpan = NO_TRACE): Promise<JobOutcome> {
    this.#runningCount++;
    try {
      const outcome = await this.#runPaid(job, delivery, clientSignal, span);
      if (outcome.kind === 'failed') delivery.fail(outcome.error);
      return outcome;
    } finally {
      this.#runningCount--;
      if (this.#runningCount === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  /** Placements that running jobs may still need if their provider fails, grouped by constraints. */
  drainDemands(): Iterable<DrainDemand> {
    const demands = new Map<string, { -readonly [Name in keyof DrainDemand]: DrainDemand[Name] }>();
    for (const running of this.#jobs) {
      if (!this.#attempts.canRetry(running)) continue;
      const { model, providerSerial, providerId = null, trustFloor } = running.slotRequest;
      const key = JSON.stringify([model, providerSerial, providerId, trustFloor]);
      const demand = demands.get(key);
      if (demand === undefined) demands.set(key, { model, providerSerial, providerId, trustFloor, jobs: 1 });
      else demand.jobs++;
    }
    return demands.values();
  }

  /** Jobs in the queue or on a provider. */
  get running(): number {
    return this.#runningCount;
  }

  /** Resolves when no job is in the queue or on a provider. */
  whenIdle(): Promise<void> {
    if (this.#runningCount === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  /** Stops all attempts, for a shutdown of the coordinator. Clients get an error, inside the stream if begun. */
  stop(): void {
    this.#attempts.stop();
  }

  /** The reservation is settled or released before the client sees the end, so the client can spend the rest at once. */
  async #runPaid(job: JobRequest, delivery: Delivery, clientSignal: AbortSignal, span: TraceSpan): Promise<JobOutcome> {
    const { models, placements, onRequest, expected, billing, timings, now } = this.#options;
    const { model } = job.params;
    // The wait for an image provider came before.
    if (job.images === null && !models.serves(model)) {
      return notServed(model, expected.has(model), () => models.listedNames());
    }
    const type = modelTypeOf(job.endpoint);
    if (job.images === null && !models.isOfType(model, type)) {
      return failed(NO_ATTEMPTS, otherType(models, model, type), 'other_model_type');
    }
    onRequest(model);
    const named = await namedProvider(job, placements);
    if (named === 'ambiguous') return failed(NO_ATTEMPTS, ambiguousSerial(), 'ambiguous_serial');
    const bill = billing.open(job, models.contextLength(model, named));
    try {
      const reserving = span.child('inference.reservation');
      const refusal = await bill.reserve();
      reserving.end({}, refusal?.reason ?? null);
      if (refusal !== null) return failed(NO_ATTEMPTS, refusal.error, refusal.reason);
      const running: RunningJob = {
        job,
        delivery,
        bill,
        clientSignal,
        slotRequest: this.#slotRequest(job, named),
        deadline: now() + timings.overallMs,
        span,
        attemptSpans: new Map(),
        attemptRecords: [],
        engineFailures: new Map(),
        refusals: [],
        attemptCount: 0,
        imageWaitAttempt: null,
        sealedRefusal: null,
        reserved: null,
      };
      this.#jobs.add(running);
      return await this.#attempts.run(running).finally(() => this.#jobs.delete(running));
    } finally {
      await bill.close();
    }
  }

  #slotRequest(job: JobRequest, named: NamedProvider): RunningJob['slotRequest'] {
    const { model, stream } = job.params;
    return {
      model,
      accountId: job.accountId,
      ...named,
      candidates: job.sealed === null ? null : new Set(job.sealed.candidates.keys()),
      exclude: new Set<ProviderId>(),
      excludedOwners: new Set<string>(),
      image: job.images,
      ...strictest(this.#options.trustFloor(model), job.trustFloor),
      work: expectedWork(job),
      promptPrefixes: job.promptPrefixes,
      revocable: !stream,
    };
  }
}

type NamedProvider = Pick<SlotRequest, 'providerSerial' | 'providerId'>;

/** Only two levels exist, so `hardware` is the stricter one. */
function strictest(ofModel: TrustLevel | null, ofClient: TrustLevel | null): Pick<SlotRequest, 'trustFloor' | 'ownFloor'> {
  const trustFloor = ofClient === 'hardware' ? ofClient : ofModel;
  return { trustFloor, ownFloor: trustFloor !== ofModel };
}

/** The provider named by the client. A serial number proved by one provider means that provider, even if others claim it. */
async function namedProvider({ params, providerId }: JobRequest, placements: Placements): Promise<NamedProvider | 'ambiguous'> {
  const { providerSerial } = params;
  if (providerSerial === null || providerId !== null) return { providerSerial, providerId };
  const resolved = await placements.resolveSerial(providerSerial);
  return resolved === 'ambiguous' ? 'ambiguous' : { providerSerial, providerId: resolved };
}

function ambiguousSerial(): ApiError {
  const message =
    'Several providers claim this provider_serial and none proves it with a certificate chain. Name one of them by its id in the X-Inference-Provider-Id header.';
  return apiError('invalid_request', { param: 'provider_serial', message });
}

/** Error for a served model of another type than the endpoint. */
function otherType(models: NetworkModels, model: string, requested: ModelType): ApiError {
  const output = models.isOfType(model, 'image') ? 'images' : models.isOfType(model, 'embedding') ? 'vectors' : 'text';
  const message = {
    images: 'This model makes images. Use it at /v1/images/generations.',
    vectors: 'This model makes vectors. Use it at /v1/embeddings.',
    text: `This model writes text and makes no ${requested === 'image' ? 'images' : 'vectors'}.`,
  }[output];
  return apiError('invalid_request', { param: 'model', message });
}
