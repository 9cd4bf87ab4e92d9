/** Downloads the images that a request references by `https` URL, and inlines them, because providers fetch no images. */
import { COULD_NOT_PROCESS, RequestError, readJsonBody } from '@inference/formats';
import { concatBytes, MAX_E2E_VISION_BODY_BYTES, MAX_INPUT_IMAGE_BYTES, MAX_INPUT_IMAGES, utf8 } from '@inference/protocol';
import { chunksOf, type Fetch } from '../network/download.js';
import { type ImageData, ImageError, imageFromBytes } from './image-data.js';
import { type ImageReference, imageReferencesIn } from './image-references.js';

const MAX_REDIRECTS = 3;
/** Time for one image, redirects included. */
const TIMEOUT_MS = 30_000;

export interface InlineOptions {
  /** Fetches images; null: URLs are refused. */
  readonly fetchImage: Fetch | null;
  readonly signal: AbortSignal;
}

/** Replaces image URLs in a body by image data. Returns the same bytes if there are none. Throws a RequestError that names the part. */
export async function inlineImages(body: Uint8Array, { fetchImage, signal }: InlineOptions): Promise<Uint8Array> {
  if (!hasAddress(body)) return body;
  const json = readJsonBody(body);
  const references = imageReferencesIn(json);
  const [first] = references;
  if (first === undefined) return body;
  if (fetchImage === null) throw problem(first, 'Images are not fetched from URLs here. Send the image itself, in base64.');
  for (const reference of references) requireHttps(reference, reference.address);
  const addresses = new Map(references.map((reference) => [reference.address, reference]));
  // A URL may occur several times, and each occurrence adds the whole image to the body.
  const excess = references[MAX_INPUT_IMAGES];
  if (excess !== undefined) throw problem(excess, `A request has at most ${MAX_INPUT_IMAGES} images.`);
  // The first failure ends the other downloads.
  const failed = new AbortController();
  const budget = new ImageBudget(MAX_E2E_VISION_BODY_BYTES - body.length);
  const download = { fetchImage, budget, signal: AbortSignal.any([signal, failed.signal]) };
  const loaded = [...addresses].map(async ([address, reference]) => [address, await imageAt(reference, download)] as const);
  const images = new Map(
    await Promise.all(loaded).catch((error: unknown) => {
      failed.abort();
      throw error;
    }),
  );
  for (const { address, replace } of references) replace(images.get(address) as ImageData);
  return utf8(JSON.stringify(json));
}

/** Cheap test of the raw bytes, so that most requests are not parsed twice. */
function hasAddress(body: Uint8Array): boolean {
  const text = new TextDecoder().decode(body);
  return /https?:/i.test(text) && /"(?:image_url|input_image|image)"/.test(text);
}

function requireHttps(reference: ImageReference, address: string): void {
  if (URL.canParse(address)) {
    const { protocol, username, password } = new URL(address);
    if (protocol === 'https:' && username === '' && password === '') return;
  }
  throw problem(reference, 'Its URL must begin with https, and contain no credentials.');
}

interface Download {
  readonly fetchImage: Fetch;
  readonly budget: ImageBudget;
  readonly signal: AbortSignal;
}

/** Image bytes that still fit into the request as base64. Bounds the memory of concurrent downloads. */
class ImageBudget {
  #bytes: number;

  constructor(base64Bytes: number) {
    this.#bytes = Math.floor((base64Bytes * 3) / 4);
  }

  /** Returns whether the bytes fit. */
  take(bytes: number): boolean {
    this.#bytes -= bytes;
    return this.#bytes >= 0;
  }
}

async function imageAt(reference: ImageReference, { fetchImage, budget, signal }: Download): Promise<ImageData> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await responseAt(reference, fetchImage, AbortSignal.any([signal, timeout]));
    return imageFromBytes(await bytesOf(response, reference, budget));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RequestError) throw error;
    if (error instanceof ImageError) throw problem(reference, `${hostOf(reference)} did not answer with an image: ${error.message}`);
    const reason = timeout.aborted ? `did not answer within ${TIMEOUT_MS / 1000} seconds` : 'could not be reached';
    throw problem(reference, `${hostOf(reference)} ${reason}.`);
  }
}

/** Follows redirects to `https` URLs, without credentials or headers of the caller. */
async function responseAt(reference: ImageReference, fetchImage: Fetch, signal: AbortSignal): Promise<Response> {
  let { address } = reference;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await fetchImage(address, {
      headers: { accept: 'image/png, image/jpeg, image/webp, image/gif' },
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      redirect: 'manual',
      signal,
    });
    if (response.status === 200) return response;
    await response.body?.cancel();
    // Browsers hide the target of a redirect.
    if (response.type === 'opaqueredirect') throw problem(reference, `${hostOf(reference)} redirects. Use the final address.`);
    const target = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null;
    if (target === null || !URL.canParse(target, address)) {
      throw problem(reference, `${hostOf(reference)} answered ${response.status} instead of an image.`);
    }
    address = new URL(target, address).href;
    requireHttps(reference, address);
  }
  throw problem(reference, `${hostOf(reference)} redirects more than ${MAX_REDIRECTS} times.`);
}

async function bytesOf(response: Response, reference: ImageReference, budget: ImageBudget): Promise<Uint8Array> {
  const bytes: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunksOf(response.body)) {
    length += chunk.length;
    if (length > MAX_INPUT_IMAGE_BYTES)
      throw problem(reference, `The image exceeds the maximum of ${MAX_INPUT_IMAGE_BYTES / 2 ** 20} MiB.`);
    if (!budget.take(chunk.length)) throw problem(reference, `The request with its images is over ${MAX_E2E_VISION_BODY_BYTES} bytes.`);
    bytes.push(chunk);
  }
  return concatBytes(...bytes);
}

/** Errors name only the host, because paths and queries of URLs may be secret. */
function hostOf({ address }: ImageReference): string {
  return new URL(address).host;
}

function problem({ field }: ImageReference, reason: string): RequestError {
  return new RequestError('invalid_request', field, `${field}: ${COULD_NOT_PROCESS} ${reason}`);
}
