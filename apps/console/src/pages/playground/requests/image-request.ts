/** `sendImageRequest`: sends an image request and fetches the images. Returns the exact bytes of both, which verification needs. */
import { type Call, call, connectionFailure } from './call.js';
import { NO_ANSWER, type Problem, type RequestFailure } from './problems.js';
import { type ProviderFacts, providerFacts } from './provider-facts.js';

export interface ImageRequest {
  readonly model: string;
  readonly prompt: string;
  readonly n: number;
  readonly size: string;
  readonly seed: number | null;
}

export interface ImageAnswer {
  /** Exact bytes of the body. */
  readonly bytes: Uint8Array;
  readonly headers: Headers;
  readonly provider: ProviderFacts | null;
  readonly images: readonly Uint8Array[];
}

type ImageOutcome = { readonly kind: 'complete'; readonly answer: ImageAnswer } | { readonly kind: 'stopped' } | RequestFailure;

/** Maximum time for the response body and all images: enough for four large images over a slow connection. */
const MAX_FETCH_MS = 120_000;

export function imageBody({ model, prompt, n, size, seed }: ImageRequest): string {
  return JSON.stringify({ model, prompt, n, size, ...(seed === null ? {} : { seed }), response_format: 'url' });
}

export async function sendImageRequest(request: Omit<Call, 'path'>): Promise<ImageOutcome> {
  const called = await call({ ...request, path: '/v1/images/generations' });
  if (called.kind !== 'answer') return called;
  const { response, deadline } = called;
  const { headers } = response;
  try {
    deadline.restart(MAX_FETCH_MS);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const paths = imagePaths(bytes);
    if (paths === null) return { kind: 'failed', status: null, problem: NO_ANSWER };
    const images: Uint8Array[] = [];
    for (const path of paths) {
      const image = await fetch((request.base ?? '') + path, { credentials: 'omit', signal: deadline.signal });
      if (!image.ok) return { kind: 'failed', status: image.status, problem: NOT_THERE };
      images.push(new Uint8Array(await image.arrayBuffer()));
    }
    return { kind: 'complete', answer: { bytes, headers, provider: providerFacts(headers), images } };
  } catch {
    return connectionFailure(request.signal, deadline);
  } finally {
    deadline.clear();
  }
}

const NOT_THERE: Problem = {
  title: 'An image could not be fetched',
  text: 'The response arrived, but an image could not be fetched. Images are stored for a limited time.',
  remedy: { kind: 'retry', after: null },
};

/** Paths of the image URLs. The page fetches them from its own origin, as its Content-Security-Policy requires. Null for an unexpected body. */
export function imagePaths(body: Uint8Array): string[] | null {
  try {
    const { data } = JSON.parse(new TextDecoder().decode(body)) as { data?: unknown };
    if (!Array.isArray(data) || data.length === 0) return null;
    return data.map((item: { url?: unknown }) => {
      const { pathname } = new URL(String(item.url));
      return pathname;
    });
  } catch {
    return null;
  }
}

/** Media type by the first bytes, WebP by default. The `content-type` header is not signed. */
export function imageType(bytes: Uint8Array): string {
  if (bytes[0] === 0x89 && bytes[1] === 0x50) return 'image/png';
  if (bytes[0] === 0xff && bytes[1] === 0xd8) return 'image/jpeg';
  return 'image/webp';
}
