/**
 * `readJobRequest` parses a request for text, embeddings or a token count.
 *
 * If its body has image URLs, the caller fetches these, and `withFetchedImages` completes the job.
 */
import {
  type EmbeddingRequest,
  formatFor,
  type ImageUrlResolver,
  imagesOfRequest,
  withFetchedImages as requestWithImages,
  type TextRequest,
  textBytesOf,
} from '@inference/formats';
import { type Endpoint, toBase64 } from '@inference/protocol';
import type { FetchedInputImage, ImageUrl } from './image-fetcher.js';
import { type InputImages, jobOf, type ReadableJobRequest, type RequestInput, requireTextSize } from './job-request.js';

/** Maximum names in the `X-Inference-Ignored` header. */
const MAX_IGNORED = 100;

export type TextInput = RequestInput & { readonly endpoint: Exclude<Endpoint, '/v1/images/generations'> };

/** A parsed request whose image URLs are not fetched yet. */
export interface UnfetchedRequest {
  /** Complete if there are no image URLs. Otherwise without prefix hashes, which cover the images too. */
  readonly job: ReadableJobRequest;
  readonly request: TextRequest | EmbeddingRequest;
  /** Distinct image URLs in the body, in order of first appearance. */
  readonly imageUrls: readonly ImageUrl[];
}

/** Parses a request. Accepts images at URLs only with `mayFetch`. Throws RequestError. */
export function readJobRequest(input: TextInput, { mayFetch }: { readonly mayFetch: boolean }): UnfetchedRequest {
  const { body, unknownMembers, maxTextBytes } = input;
  // Checked before parsing, because parsing a large body would block the event loop.
  if (!mayEmbedImages(body)) requireTextSize(body.length, maxTextBytes, null);
  const options = { unknownMembers, ...(mayFetch ? { imageAt: notFetched } : {}) };
  const { request, params, answer: answerFormat, ignored } = formatFor(input.endpoint).parse(body, options);
  const inputImages = request.task === 'embed' ? null : inputImagesOf(request, body.length);
  requireTextSize(body.length, maxTextBytes, inputImages);
  const parsed = { params, answerFormat, promptPrefixes: [], images: null, inputImages, ignored: ignored.slice(0, MAX_IGNORED) };
  const job = jobOf(input, parsed);
  const imageUrls = request.task === 'embed' ? [] : imageUrlsOf(request);
  return { job: imageUrls.length === 0 ? withPrefixes(job, request, input) : job, request, imageUrls };
}

/** The job with its fetched images. `fetched` must contain each of `imageUrls`. */
export function withFetchedImages(
  { job, request }: UnfetchedRequest,
  fetched: ReadonlyMap<string, FetchedInputImage>,
  input: Pick<TextInput, 'prefixHashes' | 'accountId'>,
): ReadableJobRequest {
  if (request.task === 'embed' || job.inputImages === null) throw new Error('the request has no images');
  const imageOf = (url: string): FetchedInputImage => {
    const image = fetched.get(url);
    if (image === undefined) throw new Error('an image of the body was not fetched');
    return image;
  };
  const { maxPixels } = job.inputImages;
  const fetchedPixels =
    request.task === 'count' ? sumOf(imagesOfRequest(request), ({ url }) => (url === undefined ? 0 : imageOf(url).pixels)) : 0;
  const complete = requestWithImages(request, (url) => {
    const { mediaType, bytes } = imageOf(url);
    return { mediaType, base64: toBase64(bytes) };
  });
  const withImages = {
    ...job,
    fetchedImages: [...fetched.values()],
    inputImages: { ...job.inputImages, maxPixels: maxPixels + fetchedPixels },
  };
  return withPrefixes(withImages, complete, input);
}

/** Embeddings get no prefix hashes, because providers cache nothing for them. */
function withPrefixes(
  job: ReadableJobRequest,
  request: TextRequest | EmbeddingRequest,
  { prefixHashes, accountId }: Pick<TextInput, 'prefixHashes' | 'accountId'>,
): ReadableJobRequest {
  if (request.task === 'embed') return job;
  const { model, routing } = job.params;
  const fallbackPrefixes = prefixHashes.promptPrefixes(request, [model, ...(routing?.fallbackModels ?? [])], accountId);
  return { ...job, promptPrefixes: fallbackPrefixes.get(model) ?? [], fallbackPrefixes };
}

/** Placeholder for an image that is not fetched yet. */
const notFetched: ImageUrlResolver = () => ({ mediaType: 'image/png', base64: '' });

function imageUrlsOf(request: TextRequest): readonly ImageUrl[] {
  const urls = new Map<string, ImageUrl>();
  for (const { url, field } of imagesOfRequest(request)) if (url !== undefined && !urls.has(url)) urls.set(url, { url, field });
  return [...urls.values()];
}

function inputImagesOf(request: TextRequest, bodyBytes: number): InputImages | null {
  const images = imagesOfRequest(request);
  if (images.length === 0) return null;
  const base64Bytes = bodyBytes - textBytesOf(request, bodyBytes);
  const maxPixels = request.task === 'count' ? sumOf(images, ({ pixels = 0 }) => pixels) : 0;
  return { count: images.length, base64Bytes, fields: images.map(({ field }) => field), maxPixels };
}

function sumOf<Value>(values: readonly Value[], numberOf: (value: Value) => number): number {
  return values.reduce((sum, value) => sum + numberOf(value), 0);
}

/** Whether the body may contain the data of images. In every format, such a body contains the word `base64`. */
function mayEmbedImages(body: Uint8Array): boolean {
  return Buffer.from(body.buffer, body.byteOffset, body.length).includes('base64');
}
