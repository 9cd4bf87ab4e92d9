/** `runJob` runs the job of an HTTP request, and records how it ended: log line, metrics, trace, and receipt or error code. */
import { apiError, type ErrorCode, modelTypeOf, type SignedParts } from '@inference/formats';
import type { FastifyRequest } from 'fastify';
import type { FailedRequestRepository } from '../../database/failed-request-repository.js';
import type { ReceiptRepository } from '../../database/providers/receipt-repository.js';
import type { Delivery } from '../../inference/delivery/delivery.js';
import type { Tracer, TraceSpan } from '../../inference/job-observer.js';
import type { JobRunner } from '../../inference/job-runner.js';
import type { JobRequest } from '../../inference/request/job-request.js';
import { chargedCost } from '../../inference/settlement/bill.js';
import type { Billed, FailedJob, JobOutcome } from '../../inference/settlement/job-outcome.js';
import { errorFacts, type Log } from '../../log.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { AnswerTimes } from '../../telemetry/statistics/model-performance.js';
import { headerValue } from './request-input.js';

export interface RunJobDeps {
  readonly runner: JobRunner;
  readonly receipts: Pick<ReceiptRepository, 'add'>;
  readonly failedRequests: Pick<FailedRequestRepository, 'add'>;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
}

interface JobClient {
  readonly delivery: Delivery;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

interface EndedJob {
  readonly outcome: JobOutcome;
  readonly responseBytes: number;
  /** By the clock of `performance.now()`. */
  readonly startedAt: number;
  readonly durationMs: number;
}

/** Resolves to null after an unexpected error, which is logged and sent to the client as `internal`. */
export async function runJob(
  deps: RunJobDeps,
  request: FastifyRequest,
  job: JobRequest,
  { delivery, signal }: JobClient,
): Promise<JobOutcome | null> {
  const span = startSpan(deps, request, job);
  const startedAt = performance.now();
  try {
    const outcome = await deps.runner.run(job, delivery, signal, span);
    // A provider also signs the refusal of a sealed request.
    const receipted = outcome.kind === 'refused' ? outcome : outcome.kind === 'failed' ? null : outcome.billed;
    if (receipted !== null) storeReceipt(deps, job, receipted.signed);
    const durationMs = performance.now() - startedAt;
    recordJob(deps, job, { outcome, responseBytes: delivery.delivered, startedAt, durationMs });
    endSpan(span, outcome);
    return outcome;
  } catch (error) {
    deps.log.error({ job: job.jobId, error: errorFacts(error) }, 'job crashed');
    delivery.fail(apiError('internal'));
    storeFailure(deps, job, { code: 'internal', provider: null, model: null, durationMs: performance.now() - startedAt });
    span.end({}, 'internal');
    return null;
  }
}

function startSpan({ tracer }: Pick<RunJobDeps, 'tracer'>, request: FastifyRequest, job: JobRequest): TraceSpan {
  const attributes = {
    'http.request.method': 'POST',
    'http.route': job.endpoint,
    'inference.job_id': job.jobId,
    'inference.stream': job.params.stream,
  };
  return tracer.start(`POST ${job.endpoint}`, attributes, headerValue(request, 'traceparent'));
}

function storeReceipt(deps: Pick<RunJobDeps, 'receipts' | 'now'>, job: JobRequest, signed: SignedParts): void {
  deps.receipts.add({
    jobId: job.jobId,
    accountId: job.accountId,
    receipt: signed.receipt,
    receiptSignature: signed.receiptSignature,
    responseSignature: signed.signature,
    createdAt: deps.now(),
  });
}

interface Failure {
  readonly code: ErrorCode;
  readonly provider: ProviderConnection | null;
  /** Model of the last attempt, if any. */
  readonly model: string | null;
  readonly durationMs: number;
}

/** Also records a job that failed before it ran. */
export function recordJob(deps: Omit<RunJobDeps, 'receipts' | 'tracer'>, job: JobRequest, ended: EndedJob): void {
  const { outcome, durationMs } = ended;
  if (outcome.kind === 'failed') {
    const { error, provider, model } = outcome;
    storeFailure(deps, job, { code: error.code, provider, model, durationMs });
  }
  logJob(deps, job, outcome, durationMs);
  countJob(deps, job, ended);
}

/** Stores the error code of a failed request. Stores the requested model only if it is known: other names are arbitrary client text. */
function storeFailure(
  { runner, failedRequests, now }: Pick<RunJobDeps, 'runner' | 'failedRequests' | 'now'>,
  job: JobRequest,
  { code, provider, model, durationMs }: Failure,
): void {
  failedRequests.add({
    jobId: job.jobId,
    accountId: job.accountId,
    keyId: job.apiKeyId,
    model: runner.knowsModel(job.params.model) ? job.params.model : model,
    endpoint: job.endpoint,
    providerId: provider?.registration.identity.providerId ?? null,
    isSealed: job.sealed !== null,
    code,
    latencyMs: Math.round(durationMs),
    failedAt: now(),
  });
}

function countJob(
  { metrics }: Pick<RunJobDeps, 'metrics'>,
  job: JobRequest,
  { outcome, responseBytes, startedAt, durationMs }: EndedJob,
): void {
  const billed = outcome.kind === 'failed' ? null : outcome.billed;
  metrics.job({
    endpoint: job.endpoint,
    isSealed: job.sealed !== null,
    stream: job.params.stream,
    outcome: outcome.kind === 'failed' ? outcome.error.code : outcome.kind,
    cancelled: outcome.kind !== 'client_gone' ? null : responseBytes === 0 ? 'before_content' : 'after_content',
    ms: durationMs,
    requestBytes: job.body.length,
    responseBytes,
    billed: billed === null ? null : { model: billed.receipt.model, ...billed.usage },
    times: outcome.kind === 'delivered' ? answerTimes(job, outcome.billed, startedAt) : null,
  });
}

/** Times of a delivered answer from the start of its job. Null if unknown, or without meaning for the model's speed. */
function answerTimes({ params, endpoint }: JobRequest, { receipt, pace }: Billed, startedAt: number): AnswerTimes | null {
  // A text that is not streamed arrives as a whole, so its speed is unknown.
  if (pace === null || (!params.stream && modelTypeOf(endpoint) === 'text')) return null;
  const durationMs = pace.completedAt - startedAt;
  const firstTokenMs = params.stream ? durationMs - pace.contentMs : null;
  return { model: receipt.model, firstTokenMs, durationMs, decodedTokens: pace.decodedTokens };
}

function endSpan(span: TraceSpan, outcome: JobOutcome): void {
  const billed = outcome.kind === 'failed' ? null : outcome.billed;
  span.end(
    {
      'inference.end': outcome.kind === 'failed' ? outcome.error.code : outcome.kind,
      'inference.attempts': outcome.attemptCount,
      ...(outcome.model === null ? {} : { 'inference.model': outcome.model }),
      ...(billed === null
        ? {}
        : { 'inference.prompt_tokens': billed.usage.promptTokens, 'inference.completion_tokens': billed.usage.completionTokens }),
    },
    outcome.kind === 'failed' ? outcome.reason : null,
  );
}

/** Logs one line. `model` is null without an attempt, because the requested name may be arbitrary client text. */
function logJob(deps: Pick<RunJobDeps, 'log'>, job: JobRequest, outcome: JobOutcome, durationMs: number): void {
  const line = {
    job: job.jobId,
    endpoint: job.endpoint,
    provider: outcome.provider?.registration.identity.providerId ?? null,
    model: outcome.model,
    stream: job.params.stream,
    ...(job.sealed === null ? {} : { sealed: true }),
    ms: Math.round(durationMs),
    attempts: outcome.attemptCount,
    ...(outcome.attemptRecords.length < 2
      ? {}
      : { attempt_outcomes: outcome.attemptRecords.map(({ role, outcome }) => `${role} ${outcome}`) }),
    status: outcome.kind === 'failed' ? outcome.error.code : outcome.kind,
    ...(outcome.kind === 'failed' ? failureFields(outcome) : billedFields(outcome.billed)),
  };
  if (outcome.kind === 'failed' && outcome.problem !== undefined) deps.log.error(line, 'job');
  else deps.log.info(line, 'job');
}

function failureFields({ reason, problem }: FailedJob): Record<string, unknown> {
  return { reason, ...(problem === undefined ? {} : { problem }) };
}

/** Charged counts, which may be lower than the signed counts if the client disconnected. */
function billedFields(billed: Billed | null): Record<string, unknown> {
  if (billed === null) return { cost_micro_usd: 0 };
  const { charge, usage } = billed;
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    ...(usage.images ? { images: usage.images } : {}),
    cost_micro_usd: chargedCost(charge),
    ...(charge.kind === 'settled' ? {} : { charge: charge.kind }),
  };
}
