/**
 * Routes of all plain-mode inference endpoints except image generation. Token counting is one of them.
 *
 * The routes for images and for sealed requests also use `requestInput`, `startSpan`, `runJob` and `maxStreamBytes`.
 */
import {
  type ApiError,
  apiError,
  DEFAULT_MAX_TOKENS,
  type ErrorCode,
  formatFor,
  type HttpError,
  inferenceRouteSchema,
  modelTypeOf,
  type SignedParts,
  takesImages,
} from '@inference/formats';
import { type Endpoint, EndpointSchema, MAX_PLAIN_RESPONSE_BYTES, MAX_REQUEST_BYTES } from '@inference/protocol';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { microUsd } from '../../billing/micro-usd.js';
import type { ApiKey } from '../../database/accounts/api-key-repository.js';
import type { FailedRequestRepository } from '../../database/failed-request-repository.js';
import type { ReceiptRepository } from '../../database/providers/receipt-repository.js';
import { ClientConnection } from '../../inference/delivery/client-connection.js';
import type { Delivery } from '../../inference/delivery/delivery.js';
import { PlainDelivery } from '../../inference/delivery/plain-delivery.js';
import { plainHeaders, providerHeaders } from '../../inference/delivery/response-headers.js';
import { SendQueues } from '../../inference/delivery/send-queues.js';
import { SseFraming } from '../../inference/delivery/sse-framing.js';
import { StreamDelivery } from '../../inference/delivery/stream-delivery.js';
import type { Tracer, TraceSpan } from '../../inference/job-observer.js';
import type { JobRunner } from '../../inference/job-runner.js';
import { type JobTimings, MAX_STREAM_BYTES } from '../../inference/job-timings.js';
import { imageBytes } from '../../inference/request/count-tokens-limit.js';
import { jobIdOfRequest } from '../../inference/request/job-id.js';
import type { JobRequest, ReadJobRequest, RequestInput } from '../../inference/request/job-request.js';
import { type Route, routeHeaders } from '../../inference/request/job-routing.js';
import type { PrefixHashes } from '../../inference/request/prefix-hashes.js';
import { chargedCost } from '../../inference/settlement/bill.js';
import type { Billed, FailedJob, JobOutcome } from '../../inference/settlement/job-outcome.js';
import { errorFacts, type Log } from '../../log.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { AnswerTimes } from '../../telemetry/statistics/model-performance.js';
import { keyOf } from '../plugins/api-key-auth.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { sendError } from '../plugins/send-error.js';
import { type ImageFetching, readRequest } from './read-request.js';
import { type TokenCountingLimits, tokenCounting } from './token-counting.js';

export interface InferenceRoutes extends TokenCountingLimits, ImageFetching {
  readonly runner: JobRunner;
  readonly receipts: Pick<ReceiptRepository, 'add'>;
  readonly failedRequests: Pick<FailedRequestRepository, 'add'>;
  readonly timings: JobTimings;
  readonly prefixHashes: PrefixHashes;
  readonly log: Log;
  readonly now: () => number;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
}

export function addInference(server: FastifyInstance, routes: InferenceRoutes): void {
  const queues = new SendQueues();
  for (const { const: endpoint } of EndpointSchema.anyOf) {
    // Image generation has its own route, in `image-generations.ts`.
    if (endpoint !== '/v1/images/generations') addEndpoint(server, routes, endpoint, queues);
  }
}

function addEndpoint(
  server: FastifyInstance,
  routes: InferenceRoutes,
  endpoint: Exclude<Endpoint, '/v1/images/generations'>,
  queues: SendQueues,
): void {
  const options = {
    schema: inferenceRouteSchema(endpoint),
    onRequest: server.guards.apiKey,
    ...(takesImages(endpoint) ? { bodyLimit: server.requestBodies.maxVisionBytes } : {}),
  };
  server.post(endpoint, options, async (request, reply) => {
    const key = keyOf(request);
    const mayCount = endpoint === '/v1/messages/count_tokens' ? tokenCounting(reply, key, routes) : null;
    if (mayCount !== null && !(await mayCount(bytesOf(request).length))) return;
    const startMs = performance.now();
    const { job, refusal } = await readRequest({ endpoint, ...requestInput(request, key, routes) }, request, reply, routes);
    if (refusal !== null) {
      recordJob(routes, job, { outcome: refusal, responseBytes: 0, startMs, durationMs: performance.now() - startMs });
      sendError(reply, refusal.error);
      return;
    }
    if (mayCount !== null && job.inputImages !== null && !(await mayCount(imageBytes(job.inputImages)))) return;
    reply.hijack();
    const client = new ClientConnection(reply.raw, routes.timings.clientDrainMs, queues, reply.getHeaders());
    const span = startSpan(routes, request, job);
    await runJob(routes, job, { client, delivery: deliveryFor(routes, job, client, request), span });
  });
}

/** Parts of an HTTP request that the parsing of every format needs: body, account, API key and headers. */
export function requestInput(
  request: FastifyRequest,
  key: ApiKey,
  routes: Pick<InferenceRoutes, 'prefixHashes' | 'now'>,
): Omit<RequestInput, 'endpoint'> {
  return {
    jobId: jobIdOfRequest(request.id),
    body: bytesOf(request),
    maxTextBytes: request.server.initialConfig.bodyLimit ?? MAX_REQUEST_BYTES,
    accountId: key.accountId,
    apiKeyId: key.id,
    keySpendLimit: key.spendLimit === null ? null : microUsd(key.spendLimit),
    keyBudget: key.budget,
    nonceHeader: headerValue(request, 'x-inference-nonce'),
    prefixHashes: routes.prefixHashes,
    trustHeader: headerValue(request, 'x-inference-trust'),
    signatureHeader: headerValue(request, 'x-inference-signature'),
    keySignatureForm: key.signatureForm,
    // Requests for beta features may have members that the schema does not know.
    unknownMembers: request.headers['anthropic-beta'] === undefined ? 'refuse' : 'refuse_misspelt',
    providerIdHeader: headerValue(request, 'x-inference-provider-id'),
    now: routes.now(),
  };
}

/** Span of one job. Attributes never contain content. */
export function startSpan({ tracer }: Pick<InferenceRoutes, 'tracer'>, request: FastifyRequest, job: JobRequest): TraceSpan {
  const attributes = {
    'http.request.method': 'POST',
    'http.route': job.endpoint,
    'inference.job_id': job.jobId,
    'inference.stream': job.params.stream,
  };
  return tracer.start(`POST ${job.endpoint}`, attributes, headerValue(request, 'traceparent'));
}

interface JobContext {
  readonly client: Pick<ClientConnection, 'signal'>;
  readonly delivery: Delivery;
  readonly span: TraceSpan;
}

/** Runs a job, stores its receipt or error code, writes the log line and updates metrics. Resolves to null after an unexpected error. */
export async function runJob(
  routes: Pick<InferenceRoutes, 'runner' | 'receipts' | 'failedRequests' | 'log' | 'now' | 'metrics'>,
  job: JobRequest,
  { client, delivery, span }: JobContext,
): Promise<JobOutcome | null> {
  const startMs = performance.now();
  try {
    const outcome = await routes.runner.run(job, delivery, client.signal, span);
    const proof = outcome.kind === 'refused' ? outcome : outcome.kind === 'failed' ? null : outcome.billed;
    if (proof !== null) storeReceipt(routes, job, proof.signed);
    const durationMs = performance.now() - startMs;
    recordJob(routes, job, { outcome, responseBytes: delivery.delivered, startMs, durationMs });
    endSpan(span, outcome);
    return outcome;
  } catch (error) {
    routes.log.error({ job: job.jobId, error: errorFacts(error) }, 'job crashed');
    delivery.fail(apiError('internal'));
    storeFailure(routes, job, { code: 'internal', provider: null, model: null, durationMs: performance.now() - startMs });
    span.end({}, 'internal');
    return null;
  }
}

function deliveryFor(routes: InferenceRoutes, job: ReadJobRequest, client: ClientConnection, request: FastifyRequest): Delivery {
  const { answer, responseMetadata, signatureForm, ignored } = job;
  const errorResponse = (error: ApiError): HttpError => formatFor(job.endpoint).error(error, request.id);
  if (!job.params.stream) {
    const headers = (provider: ProviderConnection, signed: SignedParts, route: Route) => ({
      ...plainHeaders(provider, signed, ignored),
      ...routeHeaders(route, provider),
    });
    return new PlainDelivery({ client, errorResponse, headers, maxBytes: MAX_PLAIN_RESPONSE_BYTES });
  }
  const trailers = /(?:^|,)\s*trailers\s*(?:[;,]|$)/i.test(headerValue(request, 'te') ?? '');
  return new StreamDelivery({
    client,
    framing: new SseFraming({ answer, responseMetadata, signatureForm, ignored, requestId: request.id, trailers }),
    errorResponse,
    providerHeaders: (provider, route) => ({ ...providerHeaders(provider), ...routeHeaders(route, provider) }),
    jobId: job.jobId,
    maxBytes: maxStreamBytes(job),
    timings: routes.timings,
    observer: routes.metrics,
    startedAt: performance.now(),
  });
}

/** Maximum bytes of a streamed response. */
export function maxStreamBytes({ params, jsonBytes, inputImages }: Pick<JobRequest, 'params' | 'jsonBytes' | 'inputImages'>): number {
  const { maxTokens, choices = 1 } = params;
  const { base, perToken, perRequestByte } = MAX_STREAM_BYTES;
  const textBytes = jsonBytes - (inputImages?.base64Bytes ?? 0);
  return base + perToken * (maxTokens ?? DEFAULT_MAX_TOKENS) + perRequestByte * textBytes * choices;
}

function storeReceipt(routes: Pick<InferenceRoutes, 'receipts' | 'now'>, job: JobRequest, signed: SignedParts): void {
  routes.receipts.add({
    jobId: job.jobId,
    accountId: job.accountId,
    receipt: signed.receipt,
    receiptSignature: signed.receiptSignature,
    responseSignature: signed.signature,
    createdAt: routes.now(),
  });
}

interface EndedJob {
  readonly outcome: JobOutcome;
  readonly responseBytes: number;
  /** By the clock of `performance.now()`. */
  readonly startMs: number;
  readonly durationMs: number;
}

interface Failure {
  readonly code: ErrorCode;
  readonly provider: ProviderConnection | null;
  /** Model of the last attempt, if any. */
  readonly model: string | null;
  readonly durationMs: number;
}

/** Writes the log line of an ended job, updates metrics, and stores the error code of a failed job. */
function recordJob(
  routes: Pick<InferenceRoutes, 'runner' | 'failedRequests' | 'log' | 'metrics' | 'now'>,
  job: JobRequest,
  ended: EndedJob,
): void {
  const { outcome, durationMs } = ended;
  if (outcome.kind === 'failed') {
    const { error, provider, model } = outcome;
    storeFailure(routes, job, { code: error.code, provider, model, durationMs });
  }
  logJob(routes, job, outcome, durationMs);
  countJob(routes, job, ended);
}

/** Stores a failed request. The requested model is stored only if the network knows it: other names are arbitrary client text. */
function storeFailure(
  { runner, failedRequests, now }: Pick<InferenceRoutes, 'runner' | 'failedRequests' | 'now'>,
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
  { metrics }: Pick<InferenceRoutes, 'metrics'>,
  job: JobRequest,
  { outcome, responseBytes, startMs, durationMs }: EndedJob,
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
    times: outcome.kind === 'delivered' ? answerTimes(job, outcome.billed, startMs) : null,
  });
}

/** Times of a delivered answer, measured from the start of its request, if they can be measured. */
function answerTimes({ params, endpoint }: JobRequest, { receipt, pace }: Billed, startMs: number): AnswerTimes | null {
  // An unstreamed text arrives at once, so its throughput is unknown.
  if (pace === null || (!params.stream && modelTypeOf(endpoint) === 'text')) return null;
  const durationMs = pace.completedAt - startMs;
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

/** Logs one line per job. Logs the model only after an attempt was made: until then, the name is arbitrary client text. */
function logJob(routes: Pick<InferenceRoutes, 'log'>, job: JobRequest, outcome: JobOutcome, durationMs: number): void {
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
  if (outcome.kind === 'failed' && outcome.problem !== undefined) routes.log.error(line, 'job');
  else routes.log.info(line, 'job');
}

function failureFields({ reason, problem }: FailedJob): Record<string, unknown> {
  return { reason, ...(problem === undefined ? {} : { problem }) };
}

/** Charged counts, which are lower than the signed counts after a disconnect of the client. */
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

/** Value of a header, combined if the header is repeated (RFC 9110 section 5.3). */
function headerValue(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
