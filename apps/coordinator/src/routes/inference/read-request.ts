/** `readRequest` parses an inference request, and fetches the images at URLs in its body, if the operator permits that. */
import { RequestError } from '@inference/formats';
import { MAX_VISION_REQUEST_BYTES } from '@inference/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JobRunner } from '../../inference/job-runner.js';
import type { ImageFetcher } from '../../inference/request/image-fetcher.js';
import type { ReadableJobRequest } from '../../inference/request/job-request.js';
import { readJobRequest, type TextInput, withFetchedImages } from '../../inference/request/text-job-request.js';
import type { FailedJob } from '../../inference/settlement/job-outcome.js';
import { keyOf, requireModel } from '../plugins/api-key-auth.js';

export interface ImageFetching {
  readonly runner: Pick<JobRunner, 'earlyRefusal'>;
  /** Fetches images at URLs in requests. Null: such requests are refused. */
  readonly imageFetcher: Pick<ImageFetcher, 'fetchAll'> | null;
}

interface ReadRequest {
  readonly job: ReadableJobRequest;
  /** Failure for which no images were fetched. The job must not run. Null if it may run. */
  readonly refusal: FailedJob | null;
}

/** Throws RequestError for an invalid request, or a model that the API key may not use. */
export async function readRequest(
  input: TextInput,
  request: FastifyRequest,
  reply: FastifyReply,
  { runner, imageFetcher }: ImageFetching,
): Promise<ReadRequest> {
  const unfetched = readJobRequest(input, { mayFetch: imageFetcher !== null });
  const { job, imageUrls } = unfetched;
  for (const model of [job.params.model, ...(job.params.routing?.fallbackModels ?? [])]) requireModel(keyOf(request), model);
  if (imageFetcher === null || imageUrls.length === 0) return { job, refusal: null };
  const isFunded = await request.server.requestBodies.isFunded(input.accountId);
  const refusal = runner.earlyRefusal(job, isFunded);
  if (refusal !== null) return { job, refusal };
  const disconnected = new AbortController();
  reply.raw.once('close', () => disconnected.abort());
  const claim = (bytes: number): boolean => request.bodyClaim?.grow(bytes) ?? false;
  const fetched = await imageFetcher.fetchAll(imageUrls, { accountId: input.accountId, claim, signal: disconnected.signal });
  const total = [...fetched.values()].reduce((sum, { bytes }) => sum + bytes.length, input.body.length);
  if (total > MAX_VISION_REQUEST_BYTES) {
    const message = `The request and the images at its URLs have more than ${MAX_VISION_REQUEST_BYTES} bytes together.`;
    throw new RequestError('body_too_large', imageUrls[0]?.field ?? null, message);
  }
  return { job: withFetchedImages(unfetched, fetched, input), refusal: null };
}
