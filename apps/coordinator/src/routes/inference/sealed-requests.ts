/** `POST /v1/e2e/requests`: requests that clients seal (encrypt end to end) to providers. The coordinator relays and bills them. */
import { type ApiError, apiError, documentedErrors, RequestError, sealedRequestError } from '@inference/formats';
import {
  E2E_REQUEST_CONTENT_TYPE,
  E2E_RESPONSE_CONTENT_TYPE,
  type ImageOffer,
  MAX_IMAGE_PIXELS,
  MAX_PLAIN_RESPONSE_BYTES,
} from '@inference/protocol';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ClientConnection } from '../../inference/delivery/client-connection.js';
import type { Delivery } from '../../inference/delivery/delivery.js';
import { PlainDelivery } from '../../inference/delivery/plain-delivery.js';
import { SealedFraming } from '../../inference/delivery/sealed-framing.js';
import { StreamDelivery } from '../../inference/delivery/stream-delivery.js';
import type { NetworkModels } from '../../inference/placements.js';
import { bytesChargedForPixels } from '../../inference/request/count-tokens-limit.js';
import type { FreeRefusals } from '../../inference/request/free-refusals.js';
import { pixelCount } from '../../inference/request/image-job.js';
import { type JobRequest, sealedJobRequest } from '../../inference/request/job-request.js';
import { readSealedRequest, type SealedRequest } from '../../inference/request/sealed-request.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { keyOf, requireModel } from '../plugins/api-key-auth.js';
import { KEY_ERRORS } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';
import { type EndpointDeps, maxStreamBytes } from './endpoints.js';
import { requestInput } from './request-input.js';
import { runJob } from './run-job.js';
import { tokenCountAdmission } from './token-counting.js';

interface SealedDeps extends EndpointDeps {
  readonly freeRefusals: FreeRefusals;
  /** Models of the whole network. */
  readonly directory: Pick<NetworkModels, 'imageOffers'>;
}

const PATH = '/v1/e2e/requests';
/** Maximum bytes of a sealed answer that is not a stream. Padding adds up to an eighth, the final frame some kilobytes. */
const MAX_BUFFERED_BYTES = Math.ceil(1.125 * MAX_PLAIN_RESPONSE_BYTES) + 128 * 1024;

const SCHEMA = {
  summary: 'Runs a request that is sealed to chosen providers. Only they can read the body, and only the client the answer.',
  description: 'The context of the sealed request names endpoint, model, limits and candidates in clear. Each request is accepted once.',
  tags: ['Inference'],
  consumes: [E2E_REQUEST_CONTENT_TYPE],
  headers: {
    type: 'object',
    properties: {
      'X-Inference-Trust': { type: 'string', enum: ['self_signed', 'hardware'], description: 'Minimum trust level of the provider.' },
    },
  },
  body: { content: { [E2E_REQUEST_CONTENT_TYPE]: { schema: { type: 'string', format: 'binary' } } } },
  response: {
    200: {
      description: 'The sealed answer of one candidate: its status, headers and body are inside.',
      headers: {
        'Inference-E2E-Recipient': {
          type: 'string',
          description: 'Position of the answering provider among the recipients of the context.',
        },
        'X-Inference-Job-ID': { type: 'string', description: 'Id of the request (`job_id`), for its receipt.' },
      },
      content: { [E2E_RESPONSE_CONTENT_TYPE]: { schema: { type: 'string', format: 'binary' } } },
    },
    422: {
      description: 'No candidate is connected with the key to which the request is sealed. Read the keyset and seal the request again.',
      content: {
        'application/problem+json': {
          schema: { type: 'object' },
          examples: {
            stale_key: {
              summary: apiError('stale_key').message,
              value: JSON.parse(sealedRequestError(apiError('stale_key')).body) as unknown,
            },
          },
        },
      },
    },
    ...documentedErrors(
      [
        'invalid_request',
        ...KEY_ERRORS,
        'insufficient_quota',
        'key_budget_exceeded',
        'model_not_found',
        'sealed_request_replayed',
        'body_too_large',
        'not_sealed',
        'internal',
        'provider_failed',
        'bad_signature',
        'no_provider',
        'billing_unavailable',
        'overloaded',
        'shutting_down',
        'provider_timeout',
      ],
      'OpenAiError',
      { invalid_request: { message: 'context.expires_at has passed. Seal the request again.', param: 'context.expires_at' } },
    ),
  },
};

export function addSealedRequests(server: FastifyInstance, deps: SealedDeps): void {
  const { maxVisionBytes: bodyLimit } = server.requestBodies;
  server.post(PATH, { schema: SCHEMA, onRequest: server.guards.apiKey, bodyLimit }, async (request, reply) => {
    const key = keyOf(request);
    requireContentType(request);
    const input = requestInput(request, key, deps);
    const sealed = readSealedRequest(input.body, input.now);
    requireModel(key, sealed.context.model);
    const job = sealedJobRequest(input, { ...sealed, imagePixels: imagePixels(sealed, deps.directory) });
    const retryAfter = deps.freeRefusals.retryAfterSeconds(key.id);
    if (retryAfter !== null) {
      const message =
        'Providers refused too many sealed requests of this API key in the last hour. Correct the requests and try again later.';
      sendError(reply, apiError('rate_limit_exceeded', { message, retryAfter }));
      return;
    }
    if (job.endpoint === '/v1/messages/count_tokens' && !(await tokenCountAdmission(reply, key, deps)(countedBytes(job)))) return;
    reply.hijack();
    const client = new ClientConnection(reply.raw, deps.timings.clientDrainMs, deps.sendQueues, reply.getHeaders());
    const delivery = deliveryFor(deps, job, sealed, client);
    const end = await runJob(deps, request, job, { delivery, signal: client.signal });
    if (end?.kind === 'refused') deps.freeRefusals.count(key.id, job.body.length);
  });
}

/** Bytes charged to the limit on token counting. The pixels of sealed images are unknown, so the maximum is charged. */
function countedBytes({ body, inputImages }: Pick<JobRequest, 'body' | 'inputImages'>): number {
  return body.length + (inputImages === null ? 0 : bytesChargedForPixels(inputImages));
}

function requireContentType({ headers }: FastifyRequest): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== E2E_REQUEST_CONTENT_TYPE) {
    throw new RequestError('not_sealed', 'Content-Type', apiError('not_sealed').message);
  }
}

/**
 * Pixels for which each image is billed: of the size in the context, by default of the model's largest size. Null without images.
 *
 * If no size is known, for example from an outdated view of the cluster, the network's maximum is billed, because 0 pixels would be free.
 */
function imagePixels({ context }: Pick<SealedRequest, 'context'>, directory: SealedDeps['directory']): number | null {
  if (context.images === undefined) return null;
  if (context.image_size !== undefined) return pixelCount(context.image_size);
  const offers: readonly ImageOffer[] = directory.imageOffers().get(context.model) ?? [];
  const sizes = offers.flatMap((offer) => offer.sizes);
  return sizes.length === 0 ? MAX_IMAGE_PIXELS : Math.max(...sizes.map(pixelCount));
}

function deliveryFor(
  deps: SealedDeps,
  job: JobRequest,
  { candidates }: Pick<SealedRequest, 'candidates'>,
  client: ClientConnection,
): Delivery {
  const recipient = (provider: ProviderConnection): Record<string, string> => ({
    'Inference-E2E-Recipient': String(candidates.get(provider.registration.identity.providerId)?.index ?? ''),
  });
  const errorResponse = (error: ApiError) => sealedRequestError(error);
  if (!job.params.stream) {
    const headers = (provider: ProviderConnection) => ({
      'Content-Type': E2E_RESPONSE_CONTENT_TYPE,
      'Cache-Control': 'no-store',
      ...recipient(provider),
      'X-Inference-Job-ID': job.jobId,
    });
    return new PlainDelivery({ client, errorResponse, headers, maxBytes: MAX_BUFFERED_BYTES });
  }
  return new StreamDelivery({
    client,
    framing: new SealedFraming(),
    errorResponse,
    providerHeaders: recipient,
    jobId: job.jobId,
    maxBytes: maxStreamBytes(job),
    timings: deps.timings,
    observer: deps.metrics,
    startedAt: performance.now(),
  });
}
