/**
 * The job context: what coordinator and provider agree on for one job. It travels in clear beside the sealed body and is
 * bound to it as HPKE `info`, so that a body sealed for one job can be opened for no other (design: sealing).
 */
import Type, { type Static } from 'typebox';
import { concatBytes, utf8 } from './bytes.js';
import { canonicalJsonBytes } from './canonical-json.js';
import { EndpointSchema, JobIdSchema, KeyIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from './ids.js';
import { MAX_IMAGES } from './wire/limits.js';

/** An absolute address of one image: characters of RFC 3986 alone, so that it needs no escape in JSON. */
export const ImageUrlSchema = Type.String({ pattern: "^https?://[A-Za-z0-9._~:/?#\\[\\]@!$&'()*+,;=%-]+$", maxLength: 512 });

/** What the coordinator decided in the client's place. Repeated in the receipt, so that a client sees it. */
export const OverridesSchema = Type.Object({
  /** Tokens; present when the client named no limit (spec: 8192 injected). */
  max_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
  /** Where the images of the answer can be fetched, one address for each, in order; present when the answer names them by URL. */
  image_urls: Type.Optional(Type.Array(ImageUrlSchema, { minItems: 1, maxItems: MAX_IMAGES })),
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
  /** Most tokens the job may generate, hidden ones included. */
  max_tokens: Type.Integer({ minimum: 1 }),
  overrides: OverridesSchema,
  /** `id` and `created` (seconds) that the rendered response carries. */
  response_id: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
  created: Type.Integer({ minimum: 0 }),
  /** SHA-256 of the client's body, byte for byte as received. */
  request_sha256: Sha256HexSchema,
  client_nonce: Type.Optional(ClientNonceSchema),
  /**
   * Whose prompts may share what was computed for a prefix: a keyed hash of the account, by which a provider cannot tell who that
   * is. Left out: nobody's.
   */
  cache_scope: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
  issued_at: MillisecondsSchema,
  expires_at: MillisecondsSchema,
});
export type JobContext = Static<typeof JobContextSchema>;

/** Clocks of coordinator and provider may differ by this much, in milliseconds. */
export const CLOCK_TOLERANCE_MS = 120_000;

/**
 * HPKE `info` of a job: `"inference/job/v1" 0x00 ‖ SHA-256(canonical JSON of the context)`.
 * `sha256` is given by the caller, so that this file stays free of any crypto library.
 */
export function jobInfo(context: JobContext, sha256: (bytes: Uint8Array) => Uint8Array): Uint8Array {
  return concatBytes(utf8('inference/job/v1\0'), sha256(canonicalJsonBytes(context)));
}
