/** Reads requests, with the images at their URLs if the operator lets them be fetched. Nothing is fetched for a request that is refused. */
import { type FetchedImage, formatFor, RequestError, takesImages } from '@inference/formats';
import { MAX_VISION_REQUEST_BYTES } from '@inference/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JobRunner } from '../../inference/job-runner.js';
import type { FetchedInputImage, ImageFetcher, ImageUrl } from '../../inference/request/image-fetcher.js';
import { type ReadJobRequest, type RequestInput, readJobRequest } from '../../inference/request/job-request.js';
import type { FailedJob } from '../../inference/settlement/job-outcome.js';
import { keyOf, requireModel } from '../plugins/api-key-auth.js';

export interface ImageFetching {
  readonly runner: Pick<JobRunner, 'earlyRefusal'>;
  /** Fetches images at URLs of requests; null: URLs are refused. */
  readonly imageFetcher: Pick<ImageFetcher, 'fetchAll'> | null;
}

interface ReadRequest {
  readonly job: ReadJobRequest;
  /** Reason for not running the job, before any image is fetched. Null: the job may run. */
  readonly refusal: FailedJob | null;
}

type TextInput = Parameters<typeof readJobRequest>[0];

/** Reads a request for models that its key may use. Throws RequestError. */
export async function readRequest(
  input: TextInput,
  request: FastifyRequest,
  reply: FastifyReply,
  { runner, imageFetcher }: ImageFetching,
): Promise<ReadRequest> {
  const urls = imageFetcher === null || !mayHaveImageUrls(input) ? [] : imageUrlsOf(input);
  if (imageFetcher === null || urls.length === 0) return { job: readPermitted(input, request), refusal: null };
  const unfetched = readPermitted({ ...input, fetched: new Map(urls.map(({ url }) => [url, NOT_FETCHED])) }, request);
  const isFunded = await request.server.requestBodies.isFunded(input.accountId);
  const refusal = runner.earlyRefusal(unfetched, isFunded);
  if (refusal !== null) return { job: unfetched, refusal };
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  const claim = (bytes: number): boolean => request.bodyClaim?.grow(bytes) ?? false;
  const fetched = await imageFetcher.fetchAll(urls, { accountId: input.accountId, claim, signal: gone.signal });
  const total = [...fetched.values()].reduce((sum, { bytes }) => sum + bytes.length, input.body.length);
  if (total > MAX_VISION_REQUEST_BYTES) {
    const message = `The request and the images at its URLs have more than ${MAX_VISION_REQUEST_BYTES} bytes together.`;
    throw new RequestError('body_too_large', urls[0]?.field ?? null, message);
  }
  return { job: readJobRequest({ ...input, fetched }), refusal: null };
}

function readPermitted(input: TextInput, request: FastifyRequest): ReadJobRequest {
  const job = readJobRequest(input);
  for (const model of [job.params.model, ...(job.params.routing?.fallbackModels ?? [])]) requireModel(keyOf(request), model);
  return job;
}

/** Whether reading the URLs of a body is worthwhile. */
function mayHaveImageUrls({ endpoint, body }: Pick<RequestInput, 'endpoint' | 'body'>): boolean {
  return takesImages(endpoint) && Buffer.from(body.buffer, body.byteOffset, body.length).includes('https:');
}

/** Distinct `https` URLs of images in a body, in order of first appearance. Throws RequestError. */
function imageUrlsOf({ endpoint, body, unknownMembers }: Pick<RequestInput, 'endpoint' | 'body' | 'unknownMembers'>): readonly ImageUrl[] {
  const urls = new Map<string, ImageUrl>();
  const imageAt = (url: string, field: string): FetchedImage => {
    if (!urls.has(url)) urls.set(url, { url, field });
    return { mediaType: NOT_FETCHED.mediaType, base64: '' };
  };
  formatFor(endpoint).parse(body, { unknownMembers, imageAt });
  return [...urls.values()];
}

/** Stands for an image that is not fetched yet. */
const NOT_FETCHED: FetchedInputImage = { mediaType: 'image/png', bytes: new Uint8Array(0) };
