/**
 * Job context: the clear-text terms of one job that the coordinator sends to the provider.
 *
 * The context's hash is the HPKE `info` of the sealed body, so the body opens only with this context.
 */
import Type, { type Static } from 'typebox';
import { concatBytes, utf8 } from './bytes.js';
import { canonicalJsonBytes } from './canonical-json.js';
import { EndpointSchema, JobIdSchema, KeyIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from './ids.js';
import { MAX_IMAGES, MAX_INPUT_IMAGES } from './wire/limits.js';

/** Absolute URL of one image. Only RFC 3986 characters, so that JSON needs no escapes. */
export const ImageUrlSchema = Type.String({ pattern: "^https?://[A-Za-z0-9._~:/?#\\[\\]@!$&'()*+,;=%-]+$", maxLength: 512 });

/** Decisions that the coordinator made for the client. The receipt repeats them for the client. */
export const OverridesSchema = Type.Object({
  /** Output token limit that the coordinator set, because the request has none. */
  max_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
  /** URLs of the generated images, in order. Present if the response links images instead of embedding them. */
  image_urls: Type.Optional(Type.Array(ImageUrlSchema, { minItems: 1, maxItems: MAX_IMAGES })),
  /** SHA-256 of each image that the coordinator fetched, in order of the distinct URLs in the body. */
  fetched_images: Type.Optional(Type.Array(Sha256HexSchema, { minItems: 1, maxItems: MAX_INPUT_IMAGES })),
});
export type Overrides = Static<typeof OverridesSchema>;

/** base64url of 32 bytes, chosen by the client (`X-Inference-Nonce`) and repeated in the receipt. */
export const ClientNonceSchema = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });

export const JobContextSchema = Type.Object({
  v: Type.Literal(1),
  job_id: JobIdSchema,
  provider_id: ProviderIdSchema,
  key_id: KeyIdSchema,
  endpoint: EndpointSchema,
  model: Type.String({ minLength: 1, maxLength: 256 }),
  stream: Type.Boolean(),
  /** Maximum tokens that the job may generate, including hidden tokens. */
  max_tokens: Type.Integer({ minimum: 1 }),
  overrides: OverridesSchema,
  /** `id` of the response. */
  response_id: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
  /** `created` of the response, in Unix seconds. */
  created: Type.Integer({ minimum: 0 }),
  /** SHA-256 of the client's body, byte for byte as received. */
  request_sha256: Sha256HexSchema,
  client_nonce: Type.Optional(ClientNonceSchema),
  /** Scope of prefix-cache sharing: a keyed hash of the account, opaque to providers. Absent: no sharing. */
  cache_scope: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
  issued_at: MillisecondsSchema,
  expires_at: MillisecondsSchema,
});
export type JobContext = Static<typeof JobContextSchema>;

/** Maximum clock difference between coordinator and provider, in milliseconds. */
export const CLOCK_TOLERANCE_MS = 120_000;

/**
 * HPKE `info` of a job: `"inference/job/v1" 0x00 ‖ SHA-256(canonical JSON of the context)`.
 *
 * @param sha256 Injected, because this file also runs in browsers.
 */
export function jobInfo(context: JobContext, sha256: (bytes: Uint8Array) => Uint8Array): Uint8Array {
  return concatBytes(utf8('inference/job/v1\0'), sha256(canonicalJsonBytes(context)));
}
