/** `POST /v1/images/generations`: waits for a provider of the requested images, reserves image URLs if requested, and runs the job. */
import { type ApiError, apiError, formatFor, inferenceRouteSchema, openAiError, type ParsedImages, RequestError } from '@inference/formats';
import { MAX_PLAIN_RESPONSE_BYTES } from '@inference/protocol';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiKey } from '../../database/accounts/api-key-repository.js';
import type { DeferredReceipts } from '../../images/deferred-receipts.js';
import type { ImageAllocation, ImageStore } from '../../images/image-store.js';
import { ClientConnection } from '../../inference/delivery/client-connection.js';
import { ImageDelivery } from '../../inference/delivery/image-delivery.js';
import { PlainDelivery } from '../../inference/delivery/plain-delivery.js';
import { plainHeaders } from '../../inference/delivery/response-headers.js';
import type { ImageSupply } from '../../inference/queue/image-supply.js';
import { type ImageJob, maxBodyBytes, maxBytesOf } from '../../inference/request/image-job.js';
import { imageJobRequest, type RequestInput } from '../../inference/request/job-request.js';
import { routeHeaders } from '../../inference/request/job-routing.js';
import { errorFacts } from '../../log.js';
import { keyOf, mayUseModel, requireModel } from '../plugins/api-key-auth.js';
import { originOf } from '../plugins/request-origin.js';
import type { EndpointDeps } from './endpoints.js';
import { IMAGE_FILES_PATH } from './image-files.js';
import { requestInput } from './request-input.js';
import { runJob } from './run-job.js';

const ENDPOINT = '/v1/images/generations';
/** Maximum time from the first byte of a provider's response to its last, in milliseconds. */
const MAX_TRANSFER_MS = 10 * 60_000;

interface ImageDeps extends Omit<EndpointDeps, 'countTokensLimit' | 'countTokensNetworkLimit' | 'imageFetcher' | 'sendQueues'> {
  readonly store: ImageStore;
  readonly deferredReceipts: DeferredReceipts;
  readonly supply: ImageSupply;
  /** Maximum wait for an image provider, in milliseconds. */
  readonly queueMs: number;
  /** Origin of image URLs, such as `https://gateway.example`. Null stands for the origin of the request. */
  readonly publicOrigin: string | null;
}

export function addImages(server: FastifyInstance, deps: ImageDeps): void {
  const format = formatFor(ENDPOINT);
  server.post(ENDPOINT, { schema: inferenceRouteSchema(ENDPOINT), onRequest: server.guards.apiKey }, async (request, reply) => {
    const key = keyOf(request);
    const input = { ...requestInput(request, key, deps), endpoint: ENDPOINT } as const;
    const parsed = format.parse(input.body, input);
    if (parsed.params.model !== null) requireModel(key, parsed.params.model);
    const origin = originOf(request, deps.publicOrigin);
    reply.hijack();
    const client = new ClientConnection(reply.raw, deps.timings.clientDrainMs, null, reply.getHeaders());
    try {
      const rejection = await generateImages(deps, { input, parsed, key, origin, client, request });
      if (rejection === null) return;
      deps.log.info(
        { request: request.id, endpoint: ENDPOINT, status: rejection.error.code, reason: rejection.reason },
        'image request refused',
      );
      client.answerError(openAiError(rejection.error));
    } catch (error) {
      if (!(error instanceof RequestError)) deps.log.error({ request: request.id, error: errorFacts(error) }, 'request failed');
      client.answerError(openAiError(error instanceof RequestError ? error : apiError('internal')));
    }
  });
}

interface ImageCall {
  readonly input: RequestInput;
  readonly parsed: ParsedImages;
  readonly key: ApiKey;
  readonly origin: string;
  readonly client: ClientConnection;
  readonly request: FastifyRequest;
}

interface Rejection {
  readonly error: ApiError;
  /** For the log. */
  readonly reason: string;
}

/** Returns a rejection that is not sent yet, otherwise null. Throws RequestError for an invalid header. */
async function generateImages(deps: ImageDeps, { input, parsed, key, origin, client, request }: ImageCall): Promise<Rejection | null> {
  const { image, model: named } = parsed.params;
  const waitUntil = deps.now() + deps.queueMs;
  const query = { model: named, image, accountId: key.accountId, mayUse: (model: string) => mayUseModel(key, model) };
  const match = await deps.supply.wait(query, deps.queueMs, client.signal);
  if (match.kind === 'disconnected') return null;
  if (match.kind === 'refused') return match;
  const { model, pixels } = match;
  const imageJob = { ...image, pixels, waitUntil };
  if (maxBodyBytes(imageJob) === null) {
    const message = 'response_format b64_json cannot carry n images of this size. Request fewer images, or response_format url.';
    return { error: apiError('invalid_request', { param: 'response_format', message }), reason: 'too_large' };
  }
  if (image.responseFormat === 'b64_json') {
    return runImageJob(deps, { input, parsed, client, request }, { model, imageJob: { ...imageJob, urls: null }, allocation: null });
  }
  const allocation = deps.store.allocate(image.count, image.format, maxBytesOf(pixels), key.accountId);
  if (allocation === null) return STORE_FULL;
  try {
    const urls = allocation.fileNames.map((fileName) => `${origin}${IMAGE_FILES_PATH}/${fileName}`);
    return await runImageJob(deps, { input, parsed, client, request }, { model, imageJob: { ...imageJob, urls }, allocation });
  } finally {
    allocation.close();
  }
}

const STORE_FULL: Rejection = { error: apiError('images_unavailable'), reason: 'store_full' };

async function runImageJob(
  deps: ImageDeps,
  { input, parsed, client, request }: Pick<ImageCall, 'input' | 'parsed' | 'client' | 'request'>,
  { model, imageJob, allocation }: { readonly model: string; readonly imageJob: ImageJob; readonly allocation: ImageAllocation | null },
): Promise<Rejection | null> {
  const job = imageJobRequest(input, parsed, { model, images: imageJob });
  const plain = new PlainDelivery({
    client,
    errorResponse: (error) => formatFor(ENDPOINT).error(error, request.id),
    headers: (provider, signed, route) => ({ ...plainHeaders(provider, signed, job.ignored), ...routeHeaders(route, provider) }),
    maxBytes: MAX_PLAIN_RESPONSE_BYTES,
  });
  const noRoom = new AbortController();
  const onNoRoom = (): void => noRoom.abort();
  const delivery = new ImageDelivery({
    plain,
    responseMetadata: job.responseMetadata,
    imageJob,
    allocation,
    onNoRoom,
    maxMs: MAX_TRANSFER_MS,
  });
  const receipts = allocation === null ? deps.receipts : deferringReceipts(deps.deferredReceipts, allocation.expiresAt);
  // If the image store is full, the job is cancelled without a charge or an effect on the provider's reputation.
  const signal = AbortSignal.any([client.signal, noRoom.signal]);
  const end = await runJob({ ...deps, receipts }, request, job, { delivery, signal });
  // No images of a job that was not charged remain.
  if (end === null || end.kind === 'failed' || end.billed === null) await allocation?.deleteStored();
  // `noRoom` also ends the job as `client_gone`.
  return end?.kind === 'client_gone' && !client.isDisconnected ? STORE_FULL : null;
}

/** Keeps receipts in memory until the image URLs in them expire; see `DeferredReceipts`. */
function deferringReceipts(deferredReceipts: DeferredReceipts, until: number): ImageDeps['receipts'] {
  return { add: (receipt) => deferredReceipts.add(receipt, until) };
}
