/** Seals a request to its candidates. */
import { type E2eCrypto, type SealedE2eRequest, sealE2eRequest } from '@inference/protocol';
import type { Candidates } from '../network/network.js';
import type { SealableRequest } from './sealable-request.js';

/** Time in which a provider accepts a sealed request, in milliseconds: the wait in the queue and clock differences. */
const LIFETIME_MS = 10 * 60_000;

/** `now` in milliseconds since 1970; `cacheSecret` is base64url of 32 bytes, or null. */
export function sealRequest(
  crypto: E2eCrypto,
  request: SealableRequest,
  { providers, log }: Candidates,
  { now, cacheSecret }: { readonly now: number; readonly cacheSecret: string | null },
): SealedE2eRequest {
  return sealE2eRequest(crypto, {
    context: {
      endpoint: request.endpoint,
      model: request.model,
      stream: request.stream,
      max_tokens: request.maxTokens,
      ...(request.inputImages === null ? {} : { input_images: request.inputImages.count, input_image_bytes: request.inputImages.bytes }),
      ...(request.images === null ? {} : { images: request.images }),
      ...(request.imageSize === null ? {} : { image_size: request.imageSize }),
      issued_at: now,
      expires_at: now + LIFETIME_MS,
      ...(log === null ? {} : { log }),
    },
    recipients: providers.map(({ recipient }) => recipient),
    head: {
      ...(cacheSecret === null ? {} : { cache_secret: cacheSecret }),
      ...(request.clientNonce === null ? {} : { client_nonce: request.clientNonce }),
    },
    body: request.body,
  });
}
