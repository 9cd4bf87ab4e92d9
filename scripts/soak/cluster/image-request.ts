/** `requestImage`: requests an image from one coordinator, downloads the file from another, and checks the signed hash. */
import { setTimeout as delay } from 'node:timers/promises';
import { fromBase64, type Receipt } from '@inference/protocol';
import { providerIdOf, sha256Hex } from '@inference/protocol/crypto';
import { verifyResponse } from '@inference/verifier';
import { type Access, BadAnswer } from '../../../test/support/verified-client.js';

export interface ImageOrder {
  /** Coordinator that accepts the request, and the client's key. */
  readonly access: Access;
  /** Coordinator from which the image is downloaded. */
  readonly fetchFrom: string;
  readonly model: string;
  readonly prompt: string;
  readonly seed: number;
  readonly signal: AbortSignal;
}

export type ImageOutcome =
  | { readonly kind: 'verified'; readonly receipt: Receipt }
  /** The coordinator answered with an error. */
  | { readonly kind: 'refused'; readonly status: number; readonly code: string };

/** Members of the response. Not validated here: the verifier and the download detect errors. */
interface Body {
  readonly data?: readonly { readonly url?: string }[];
  readonly error?: { readonly code?: string };
}

const RETRY_MS = 250;
/** Time limit of a download; longer than any fault. */
const MAX_FETCH_MS = 40_000;

/** Throws {@link BadAnswer} if the answer does not verify, or the image is lost or different. */
export async function requestImage({ access, fetchFrom, model, prompt, seed, signal }: ImageOrder): Promise<ImageOutcome> {
  const request = JSON.stringify({ model, prompt, seed, size: '256x256', response_format: 'url' });
  const response = await fetch(`${access.baseUrl}/v1/images/generations`, {
    method: 'POST',
    headers: { 'x-api-key': access.apiKey, 'content-type': 'application/json' },
    body: request,
    signal,
  });
  const body = Buffer.from(await response.arrayBuffer());
  const parsed = JSON.parse(body.toString()) as Body;
  if (!response.ok) {
    if (parsed.error?.code === undefined) throw new BadAnswer(`an error ${response.status} without a code`);
    return { kind: 'refused', status: response.status, code: parsed.error.code };
  }
  const { headers } = response;
  const publicKey = headers.get('x-attestation-se-public-key') ?? '';
  if (providerIdOf(fromBase64(publicKey)) !== headers.get('x-provider-id')) throw new BadAnswer('the key is not that of the provider');
  const expected = { model, requestSha256: sha256Hex(Buffer.from(request)) };
  const { verified, receipt } = verifyResponse({ body, headers, publicKey, expected });
  const address = parsed.data?.[0]?.url;
  if (!verified || receipt === null || address === undefined) throw new BadAnswer('an image whose answer does not verify');
  const image = await fetchImage(new URL(new URL(address).pathname, fetchFrom), signal);
  if (sha256Hex(image) !== receipt.image_sha256?.[0]) throw new BadAnswer('another coordinator serves other bytes of an image');
  return { kind: 'verified', receipt };
}

/** Retries until status 200. Throws {@link BadAnswer} after {@link MAX_FETCH_MS}. */
async function fetchImage(url: URL, signal: AbortSignal): Promise<Buffer> {
  const deadline = performance.now() + MAX_FETCH_MS;
  for (;;) {
    const found = await fetch(url, { signal }).then(
      async (response) => ({ status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }),
      (error: unknown) => ({ status: 0, bytes: Buffer.from(String(error)) }),
    );
    if (found.status === 200) return found.bytes;
    signal.throwIfAborted();
    if (performance.now() > deadline) throw new BadAnswer(`an image cannot be fetched at another coordinator: status ${found.status}`);
    await delay(RETRY_MS);
  }
}
