/**
 * `addTextEndpoints` registers chat, responses, completions, messages, embeddings and token counting.
 *
 * Image generation is in `image-generations.ts`. Requests that the coordinator cannot decrypt are in `sealed-requests.ts`.
 */
import {
  type ApiError,
  DEFAULT_MAX_TOKENS,
  formatFor,
  type HttpError,
  inferenceRouteSchema,
  type SignedParts,
  takesImages,
} from '@inference/formats';
import { type Endpoint, EndpointSchema, MAX_PLAIN_RESPONSE_BYTES } from '@inference/protocol';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ClientConnection } from '../../inference/delivery/client-connection.js';
import type { Delivery } from '../../inference/delivery/delivery.js';
import { PlainDelivery } from '../../inference/delivery/plain-delivery.js';
import { plainHeaders, providerHeaders } from '../../inference/delivery/response-headers.js';
import type { SendQueues } from '../../inference/delivery/send-queues.js';
import { SseFraming } from '../../inference/delivery/sse-framing.js';
import { StreamDelivery } from '../../inference/delivery/stream-delivery.js';
import type { JobRunner } from '../../inference/job-runner.js';
import { type JobTimings, MAX_STREAM_BYTES } from '../../inference/job-timings.js';
import { bytesChargedForPixels } from '../../inference/request/count-tokens-limit.js';
import type { JobRequest, ReadableJobRequest } from '../../inference/request/job-request.js';
import { type Route, routeHeaders } from '../../inference/request/job-routing.js';
import type { PrefixHashes } from '../../inference/request/prefix-hashes.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { keyOf } from '../plugins/api-key-auth.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { sendError } from '../plugins/send-error.js';
import { type ImageFetching, readRequest } from './read-request.js';
import { headerValue, requestInput } from './request-input.js';
import { type RunJobDeps, recordJob, runJob } from './run-job.js';
import { type TokenCountingLimits, tokenCountAdmission } from './token-counting.js';

export interface EndpointDeps extends RunJobDeps, TokenCountingLimits, ImageFetching {
  /** Declared again, because two of the interfaces declare `runner` with different types. */
  readonly runner: JobRunner;
  readonly timings: JobTimings;
  readonly prefixHashes: PrefixHashes;
  /** Shared by all endpoints, because each reading lists all connections of the machine. */
  readonly sendQueues: SendQueues;
}

export function addTextEndpoints(server: FastifyInstance, deps: EndpointDeps): void {
  for (const { const: endpoint } of EndpointSchema.anyOf) {
    if (endpoint !== '/v1/images/generations') addEndpoint(server, deps, endpoint);
  }
}

function addEndpoint(server: FastifyInstance, deps: EndpointDeps, endpoint: Exclude<Endpoint, '/v1/images/generations'>): void {
  const options = {
    schema: inferenceRouteSchema(endpoint),
    onRequest: server.guards.apiKey,
    ...(takesImages(endpoint) ? { bodyLimit: server.requestBodies.maxVisionBytes } : {}),
  };
  server.post(endpoint, options, async (request, reply) => {
    const key = keyOf(request);
    // Token counting is free, so its bytes are limited: those of the body before parsing, those for the images' pixels after it.
    const admitBytes = endpoint === '/v1/messages/count_tokens' ? tokenCountAdmission(reply, key, deps) : null;
    if (admitBytes !== null && !(await admitBytes(bytesOf(request).length))) return;
    const startedAt = performance.now();
    const { job, refusal } = await readRequest({ endpoint, ...requestInput(request, key, deps) }, request, reply, deps);
    if (refusal !== null) {
      // `runJob` records the other jobs.
      recordJob(deps, job, { outcome: refusal, responseBytes: 0, startedAt, durationMs: performance.now() - startedAt });
      sendError(reply, refusal.error);
      return;
    }
    if (admitBytes !== null && job.inputImages !== null && !(await admitBytes(bytesChargedForPixels(job.inputImages)))) return;
    // From here, `runJob` writes the response, not Fastify.
    reply.hijack();
    const client = new ClientConnection(reply.raw, deps.timings.clientDrainMs, deps.sendQueues, reply.getHeaders());
    await runJob(deps, request, job, { delivery: deliveryFor(deps, job, client, request), signal: client.signal });
  });
}

/** The writer of the job's response: a stream, or a body sent as a whole. */
function deliveryFor(deps: EndpointDeps, job: ReadableJobRequest, client: ClientConnection, request: FastifyRequest): Delivery {
  const { answerFormat, responseMetadata, signatureForm, ignored } = job;
  const errorResponse = (error: ApiError): HttpError => formatFor(job.endpoint).error(error, request.id);
  if (!job.params.stream) {
    const headers = (provider: ProviderConnection, signed: SignedParts, route: Route) => ({
      ...plainHeaders(provider, signed, ignored),
      ...routeHeaders(route, provider),
    });
    return new PlainDelivery({ client, errorResponse, headers, maxBytes: MAX_PLAIN_RESPONSE_BYTES });
  }
  const trailers = acceptsTrailers(request);
  return new StreamDelivery({
    client,
    framing: new SseFraming({ answerFormat, responseMetadata, signatureForm, ignored, requestId: request.id, trailers }),
    errorResponse,
    providerHeaders: (provider, route) => ({ ...providerHeaders(provider), ...routeHeaders(route, provider) }),
    jobId: job.jobId,
    maxBytes: maxStreamBytes(job),
    timings: deps.timings,
    observer: deps.metrics,
    startedAt: performance.now(),
  });
}

/** Whether the request's `TE` header lists `trailers` (RFC 9110 section 10.1.4). */
function acceptsTrailers(request: FastifyRequest): boolean {
  return /(?:^|,)\s*trailers\s*(?:[;,]|$)/i.test(headerValue(request, 'te') ?? '');
}

/** Maximum bytes of a streamed response. The request's text counts once per choice, because each choice may repeat it. */
export function maxStreamBytes({ params, jsonBytes, inputImages }: Pick<JobRequest, 'params' | 'jsonBytes' | 'inputImages'>): number {
  const { maxTokens, choices = 1 } = params;
  const { base, perToken, perRequestByte } = MAX_STREAM_BYTES;
  const textBytes = jsonBytes - (inputImages?.base64Bytes ?? 0);
  return base + perToken * (maxTokens ?? DEFAULT_MAX_TOKENS) + perRequestByte * textBytes * choices;
}
