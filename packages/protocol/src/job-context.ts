/** Job context: the terms of one job, in clear. Bound as HPKE `info`, so a sealed body opens for no other job. */
import Type, { type Static } from 'typebox';
import { concatBytes, utf8 } from './bytes.js';
import { canonicalJsonBytes } from './canonical-json.js';
import { EndpointSchema, JobIdSchema, KeyIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from './ids.js';
import { MAX_IMAGES, MAX_INPUT_IMAGES } from './wire/limits.js';

/** Absolute address of one image: RFC 3986 characters only, so that JSON needs no escapes. */
export const ImageUrlSchema = Type.String({ pattern: "^https?://[A-Za-z0-9._~:/?#\\[\\]@!$&'()*+,;=%-]+$", maxLength: 512 });

/** Decisions that the coordinator made for the client. Repeated in the receipt, where the client sees them. */
export const OverridesSchema = Type.Object({
  /** Tokens; present when the client named no limit (spec: 8192 injected). */
  max_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
  /** Image addresses, one per image, in order; present when the response refers to images by URL. */
  image_urls: Type.Optional(Type.Array(ImageUrlSchema, { minItems: 1, maxItems: MAX_IMAGES })),
  /** SHA-256 of each image that the coordinator fetched for a URL of the body, in order of the distinct URLs. */
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
  /** Maximum tokens that the job may generate, hidden tokens included. */
  max_tokens: Type.Integer({ minimum: 1 }),
  overrides: OverridesSchema,
  /** `id` and `created` (seconds) of the rendered response. */
  response_id: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
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

/** Tolerated clock difference between coordinator and provider, in milliseconds. */
export const CLOCK_TOLERANCE_MS = 120_000;

/**
 * HPKE `info` of a job: `"inference/job/v1" 0x00 ‖ SHA-256(canonical JSON of the context)`.
 *
 * @param sha256 Passed in, so that this file depends on no crypto library.
 */
export function jobInfo(context: JobContext, sha256: (bytes: Uint8Array) => Uint8Array): Uint8Array {
  return concatBytes(utf8('inference/job/v1\0'), sha256(canonicalJsonBytes(context)));
}
