/**
 * Context of a sealed request: the clear-text terms that the coordinator needs for placement and billing.
 *
 * The context's hash is the HPKE `info`, so no key opens a request whose context was changed.
 */
import Type, { type Static } from 'typebox';
import { canonicalJsonBytes } from '../canonical-json.js';
import { type Endpoint, EndpointSchema, KeyIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from '../ids.js';
import { ClientNonceSchema } from '../job-context.js';
import { lazyValidator } from '../lazy-validator.js';
import { MAX_IMAGES, MAX_INPUT_IMAGES } from '../wire/limits.js';
import { ImageSizeSchema } from '../wire/model-offer.js';
import { E2eError } from './error.js';
import { parseCanonicalJson } from './json.js';
import { MAX_E2E_BODY_BYTES, MAX_E2E_CONTEXT_BYTES, MAX_E2E_RECIPIENTS, MAX_E2E_VISION_BODY_BYTES } from './limits.js';

/** Size and root of the transparency log tree in which the client verified the keyset. */
export const E2eLogHeadSchema = Type.Object(
  { size: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), root: Sha256HexSchema },
  { additionalProperties: false },
);
export type E2eLogHead = Static<typeof E2eLogHeadSchema>;

/** Rejects unknown members: all parties must apply every term. */
export const E2eContextSchema = Type.Object(
  {
    v: Type.Literal(1),
    endpoint: EndpointSchema,
    model: Type.String({ minLength: 1, maxLength: 256 }),
    stream: Type.Boolean(),
    /** Maximum tokens that the job may generate, including hidden tokens. */
    max_tokens: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    /** Length of the body part. The coordinator checks it against the ciphertext, the provider against the body. */
    body_bytes: Type.Integer({ minimum: 0, maximum: MAX_E2E_VISION_BODY_BYTES }),
    /** Number of images in the prompt, for placement and reservation. Absent: none. The provider checks it against the body. */
    input_images: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_INPUT_IMAGES })),
    /** Number of base64 characters of all images in the prompt. Present only with `input_images`. */
    input_image_bytes: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_E2E_VISION_BODY_BYTES })),
    /** Number of images to generate. Present only for `/v1/images/generations`. */
    images: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_IMAGES })),
    /** Size of each generated image, which determines the reserved price. Absent: the largest offered size is reserved. */
    image_size: Type.Optional(ImageSizeSchema),
    /** base64url of 32 random bytes; accepted once. */
    nonce: ClientNonceSchema,
    issued_at: MillisecondsSchema,
    expires_at: MillisecondsSchema,
    /** Candidates, in the order of the wrapped keys. Any of them may answer. */
    recipients: Type.Array(Type.Object({ provider_id: ProviderIdSchema, key_id: KeyIdSchema }, { additionalProperties: false }), {
      minItems: 1,
      maxItems: MAX_E2E_RECIPIENTS,
    }),
    /** Absent: the client follows no log. */
    log: Type.Optional(E2eLogHeadSchema),
  },
  { additionalProperties: false },
);
export type E2eContext = Static<typeof E2eContextSchema>;

const validator = lazyValidator(E2eContextSchema);

/** Encodes a context as canonical JSON. Throws E2eError `bad_context`, `too_large`. */
export function encodeE2eContext(context: E2eContext): Uint8Array {
  requireValid(context);
  const bytes = canonicalJsonBytes(context);
  if (bytes.length > MAX_E2E_CONTEXT_BYTES) throw new E2eError('too_large', `a context of ${bytes.length} bytes is over the cap`);
  return bytes;
}

/** Parses a context from canonical JSON (RFC 8785). Throws E2eError `malformed`, `bad_context`, `too_large`. */
export function parseE2eContext(bytes: Uint8Array): E2eContext {
  if (bytes.length > MAX_E2E_CONTEXT_BYTES) throw new E2eError('too_large', `a context of ${bytes.length} bytes is over the cap`);
  const value = parseCanonicalJson(bytes, 'context');
  requireValid(value);
  return value;
}

function requireValid(value: unknown): asserts value is E2eContext {
  if (!validator().Check(value)) {
    const [first] = validator().Errors(value);
    throw badContext(first?.instancePath.slice(1) || null, first?.message ?? 'is not valid');
  }
  if (value.expires_at <= value.issued_at) throw badContext('expires_at', 'is not after issued_at');
  if ((value.images !== undefined) !== (value.endpoint === '/v1/images/generations')) {
    throw badContext('images', 'belongs to image generation, and to no other endpoint');
  }
  if (value.image_size !== undefined && value.images === undefined) {
    throw badContext('image_size', 'belongs to image generation, and to no other endpoint');
  }
  requireInputImages(value);
  const providers = new Set(value.recipients.map(({ provider_id }) => provider_id));
  if (providers.size !== value.recipients.length) throw badContext('recipients', 'names a provider twice');
}

/** Endpoints whose prompts may have images. */
const VISION_ENDPOINTS: ReadonlySet<string> = new Set([
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/messages/count_tokens',
] satisfies Endpoint[]);

function requireInputImages({ endpoint, body_bytes, input_images, input_image_bytes }: E2eContext): void {
  if ((input_images === undefined) !== (input_image_bytes === undefined)) {
    throw badContext('input_image_bytes', 'belongs to input_images');
  }
  if (input_images !== undefined && !VISION_ENDPOINTS.has(endpoint)) throw badContext('input_images', 'belongs to conversations');
  const textBytes = body_bytes - (input_image_bytes ?? 0);
  if (textBytes < 0) throw badContext('input_image_bytes', 'is more than body_bytes');
  if (textBytes > MAX_E2E_BODY_BYTES) throw new E2eError('too_large', `a body of ${textBytes} bytes besides its images is over the cap`);
}

function badContext(member: string | null, problem: string): E2eError {
  return new E2eError('bad_context', `context${member === null ? '' : `: ${member}`} ${problem}`, member);
}
