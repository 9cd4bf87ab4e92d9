/** `Metrics`: Prometheus metrics of this process. No label contains an account, key, job or text from a client. */
import type { Endpoint } from '@inference/protocol';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { StepType } from '../billing/ledger/ledger-steps.js';
import type { JobEvent, JobObserver } from '../inference/job-observer.js';
import type { ProviderEvent } from '../providers/provider-registry.js';
import { RecentCounts } from './recent-counts.js';
import { type AnswerTimes, ModelPerformance } from './statistics/model-performance.js';

/** Bucket bounds of histograms, in seconds. */
const SHORT_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const LONG_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];
/** Maximum models with their own label value. The others share the value `other`. */
export const MAX_MODELS = 64;
/** Time span of recent jobs and problems on the operator page, in minutes. */
const RECENT_MINUTES = 60;

const STEPS: readonly StepType[] = ['reserve', 'take_nonce', 'settle', 'release', 'deposit', 'request_withdrawal', 'end_withdrawal'];
const PAYMENT_OUTCOMES = ['posted', 'noted', 'flagged', 'replayed', 'mismatch', 'unknown_order', 'ignored', 'forged', 'failed'];

interface EndedJob {
  readonly endpoint: Endpoint;
  /** Whether the client sealed the request (end-to-end mode). */
  readonly isSealed: boolean;
  readonly stream: boolean;
  /** `delivered`, `client_gone`, `refused` (by a provider, end-to-end mode only), or an error code. */
  readonly outcome: string;
  /** Whether content had been delivered when the client disconnected. Null if it stayed connected. */
  readonly cancelled: 'before_content' | 'after_content' | null;
  readonly ms: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Null if nothing was billed. The model name is safe as a label, because a provider served the model. */
  readonly billed: {
    readonly model: string;
    readonly promptTokens: number;
    readonly completionTokens: number;
    readonly images?: number;
  } | null;
  /** Null if not delivered, or not measurable. */
  readonly times: AnswerTimes | null;
}

export class Metrics implements JobObserver {
  readonly registry = new Registry();
  /** Recently ended jobs by outcome. */
  readonly recentJobs: RecentCounts;
  /** Recent problems: failed attempts, sessions that the coordinator ended, quarantines, failed ledger steps. */
  readonly recentProblems: RecentCounts;
  /** Response times of delivered requests by model. */
  readonly modelPerformance: ModelPerformance;
  readonly #models = new BoundedLabels(MAX_MODELS);

  readonly #jobs = this.#counter('jobs_total', 'Jobs by endpoint and end.', ['endpoint', 'stream', 'end']);
  readonly #jobSeconds = this.#histogram('job_seconds', 'Time from request to end.', LONG_BUCKETS, ['endpoint', 'stream']);
  readonly #sealedJobs = this.#counter('e2e_jobs_total', 'Jobs whose requests clients sealed end to end, by endpoint and end.', [
    'endpoint',
    'stream',
    'end',
  ]);
  readonly #cancels = this.#counter('cancels_total', 'Jobs whose client disconnected.', ['stage']);
  readonly #bytes = this.#counter('bytes_total', 'Bytes of request bodies, and of content delivered to clients.', ['direction']);
  readonly #tokens = this.#counter('tokens_total', 'Billed tokens by model.', ['model', 'kind']);
  readonly #images = this.#counter('images_total', 'Billed images by model.', ['model']);
  readonly #imageFetches = this.#counter('image_fetches_total', 'Requests for images at their URLs, by outcome.', ['outcome']);
  readonly #firstToken = this.#histogram('first_token_seconds', 'Time from request to the first content of a stream.', LONG_BUCKETS);
  readonly #relay = this.#histogram(
    'relay_seconds',
    'Time from a provider frame to the write of its content to the client.',
    SHORT_BUCKETS,
  );
  readonly #placements = this.#counter('placements_total', 'Placements, by outcome.', ['outcome']);
  readonly #wait = this.#histogram('queue_wait_seconds', 'Wait for a free slot.', LONG_BUCKETS);
  readonly #attempts = this.#counter('failed_attempts_total', 'Failed attempts.', ['reason', 'retried']);
  readonly #hedges = this.#counter('hedges_total', 'Hedged requests, by outcome.', ['outcome']);
  readonly #peerPlacements = this.#counter('cluster_placements_total', 'Slots requested of other coordinators, by outcome.', ['outcome']);
  readonly #refusedHeartbeats = this.#counter(
    'cluster_refused_heartbeats_total',
    'Heartbeats of coordinators that this one does not work with, by reason.',
    ['reason'],
  );
  readonly #steps = this.#counter('ledger_steps_total', 'Ledger steps, by outcome.', ['step', 'outcome']);
  readonly #stepSeconds = this.#histogram('ledger_step_seconds', 'Duration of ledger steps.', LONG_BUCKETS, ['step']);
  readonly #sessions = this.#counter('provider_sessions_total', 'Provider sessions that began and ended, by reason.', ['event', 'code']);
  readonly #quarantines = this.#counter('provider_quarantines_total', 'Providers disabled by reputation, and enabled again.', ['event']);
  readonly #rolloutHalts = this.#counter('rollout_halts_total', 'Rollouts of agent versions that this coordinator halted.', []);
  readonly #statusReports = this.#counter('provider_standings_told_total', 'Status changes reported to providers.', ['trust_level']);

  readonly #paymentEvents = this.#counter('payment_events_total', 'Events of the payment processor, by outcome.', ['outcome']);
  readonly #paymentFailures = this.#counter('payment_processor_failures_total', 'Calls that the payment processor did not answer.', []);
  readonly #mails = this.#counter('mails_total', 'Mails handed to the mail service, by kind and outcome.', ['kind', 'outcome']);
  readonly #witnesses = this.#counter('witness_requests_total', 'Checkpoints sent to witnesses, by outcome.', ['witness', 'outcome']);
  readonly #deviceFailures = this.#counter('device_management_failures_total', 'Failed work of device management.', []);

  constructor(now: () => number = Date.now) {
    this.#beginAtZero();
    this.recentJobs = new RecentCounts(now, RECENT_MINUTES);
    this.recentProblems = new RecentCounts(now, RECENT_MINUTES);
    this.modelPerformance = new ModelPerformance(now);
    // The default precision of 10 ms takes half of an idle coordinator's processor time.
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: 50 });
  }

  /** Starts counters of rare events at 0. PromQL's `increase` would miss the first event of a new series. */
  #beginAtZero(): void {
    for (const event of ['quarantined', 'reinstated']) this.#quarantines.inc({ event }, 0);
    for (const retried of ['true', 'false']) this.#attempts.inc({ reason: 'bad_signature', retried }, 0);
    for (const step of STEPS) this.#steps.inc({ step, outcome: 'failed' }, 0);
    for (const outcome of ['settled', 'already_settled', 'released_before', 'unknown_job']) this.#steps.inc({ step: 'settle', outcome }, 0);
    for (const outcome of PAYMENT_OUTCOMES) this.#paymentEvents.inc({ outcome }, 0);
    for (const outcome of ['sent', 'failed']) this.#mails.inc({ kind: 'verify_email', outcome }, 0);
  }

  /** Content type and text of all metrics. */
  async read(): Promise<{ readonly contentType: string; readonly text: string }> {
    return { contentType: this.registry.contentType, text: await this.registry.metrics() };
  }

  event(event: JobEvent): void {
    switch (event.type) {
      case 'placed':
        this.#placements.inc({ outcome: event.outcome });
        this.#wait.observe(event.waitMs / 1000);
        return;
      case 'attempt_failed':
        this.#attempts.inc({ reason: event.reason, retried: String(event.retried) });
        this.recentProblems.add(`attempt_failed:${event.reason}`);
        return;
      case 'hedge':
        this.#hedges.inc({ outcome: event.outcome });
        return;
      case 'first_token':
        this.#firstToken.observe(event.ms / 1000);
        return;
      default:
        event satisfies never;
    }
  }

  rolloutHalted(): void {
    this.#rolloutHalts.inc();
  }

  /** Counts a request to a peer for a slot of its providers. */
  peerPlacement(outcome: string): void {
    this.#peerPlacements.inc({ outcome });
  }

  heartbeatRefused(reason: string): void {
    this.#refusedHeartbeats.inc({ reason });
  }

  relayed(ms: number): void {
    this.#relay.observe(ms / 1000);
  }

  job({ endpoint, isSealed, stream, outcome, cancelled, ms, requestBytes, responseBytes, billed, times }: EndedJob): void {
    const kind = { endpoint, stream: String(stream) };
    const ended = { endpoint, stream: kind.stream, end: outcome };
    this.#jobs.inc(ended);
    if (isSealed) this.#sealedJobs.inc(ended);
    this.recentJobs.add(outcome);
    this.#jobSeconds.observe(kind, ms / 1000);
    if (cancelled !== null) this.#cancels.inc({ stage: cancelled });
    this.#bytes.inc({ direction: 'request' }, requestBytes);
    this.#bytes.inc({ direction: 'response' }, responseBytes);
    if (times !== null) this.modelPerformance.add(times);
    if (billed === null) return;
    const model = this.#models.name(billed.model);
    this.#tokens.inc({ model, kind: 'prompt' }, billed.promptTokens);
    this.#tokens.inc({ model, kind: 'completion' }, billed.completionTokens);
    if (billed.images !== undefined && billed.images > 0) this.#images.inc({ model }, billed.images);
  }

  imageFetched(outcome: 'found' | 'gone' | 'unknown'): void {
    this.#imageFetches.inc({ outcome });
  }

  ledgerStep(step: StepType, outcome: string, ms: number): void {
    this.#steps.inc({ step, outcome });
    if (outcome === 'failed') this.recentProblems.add(`ledger_failed:${step}`);
    this.#stepSeconds.observe({ step }, ms / 1000);
  }

  providerEvent(event: ProviderEvent): void {
    switch (event.type) {
      case 'joined':
        this.#sessions.inc({ event: 'joined', code: '' });
        return;
      case 'left':
        this.#sessions.inc({ event: 'left', code: event.end.by === 'provider' ? 'closed' : event.end.code });
        if (event.end.by === 'coordinator') this.recentProblems.add(`provider_ended:${event.end.code}`);
        return;
      case 'trust_reported':
        this.#statusReports.inc({ trust_level: event.provider.trust.level ?? 'none' });
        return;
      case 'quarantined':
      case 'reinstated':
        this.#quarantines.inc({ event: event.type });
        if (event.type === 'quarantined') this.recentProblems.add('provider_quarantined');
    }
  }

  /** `outcome` is a code of `Deposits`, `forged` or `failed`. */
  paymentEvent(outcome: string): void {
    this.#paymentEvents.inc({ outcome });
  }

  paymentProcessorFailed(): void {
    this.#paymentFailures.inc();
  }

  mail(kind: string, outcome: 'sent' | 'failed'): void {
    this.#mails.inc({ kind, outcome });
  }

  /** Counts a checkpoint sent to a witness (third party that cosigns the transparency log), by its configured name. */
  witnessAsked(witness: string, outcome: 'cosigned' | 'failed'): void {
    this.#witnesses.inc({ witness, outcome });
  }

  deviceManagementFailed(): void {
    this.#deviceFailures.inc();
  }

  /** Registers a gauge whose values are read at each scrape. */
  gauge<Label extends string>(name: string, help: string, labels: readonly Label[], read: () => Iterable<Reading<Label>>): void {
    const gauge: Gauge<Label> = new Gauge({
      name: PREFIX + name,
      help,
      labelNames: labels,
      registers: [this.registry],
      collect: () => {
        gauge.reset();
        // Readings with the same labels are added up.
        for (const [values, value] of read()) gauge.inc(values, value);
      },
    });
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.registry] });
  }

  #histogram<Label extends string = never>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly Label[] = [],
  ): Histogram<Label> {
    return new Histogram({ name: PREFIX + name, help, buckets, labelNames, registers: [this.registry] });
  }
}

export type Reading<Label extends string> = readonly [Record<Label, string>, number];

const PREFIX = 'inference_';

export const OTHER = 'other';

export class BoundedLabels {
  readonly #max: number;
  readonly #names = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns a known name, or a new one while fewer than `max` are known. Otherwise {@link OTHER}. */
  name(name: string): string {
    if (this.#names.has(name)) return name;
    if (this.#names.size >= this.#max) return OTHER;
    this.#names.add(name);
    return name;
  }
}
