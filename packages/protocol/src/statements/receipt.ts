/** Receipt: request, output and usage of a job, signed by the enclave. Sent with the response; the basis of billing. */
import Type, { type Static } from 'typebox';
import { EndpointSchema, JobIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from '../ids.js';
import { ClientNonceSchema, OverridesSchema } from '../job-context.js';
import { MAX_IMAGES } from '../wire/limits.js';
import { asyncStatementOpener, statementOpener } from './signed-statement.js';

const Tokens = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const UsageSchema = Type.Object({
  prompt_tokens: Tokens,
  /** All generated tokens, hidden tokens included. */
  completion_tokens: Tokens,
  total_tokens: Tokens,
  /** Prompt tokens served from the prefix cache. */
  cached_tokens: Type.Optional(Tokens),
  /** Generated images. */
  images: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_IMAGES })),
});
export type Usage = Static<typeof UsageSchema>;

export const FinishReasonSchema = Type.Union([
  Type.Literal('stop'),
  Type.Literal('length'),
  Type.Literal('tool_calls'),
  /**
   * The coordinator cancelled a stream after its client disconnected. The signed response ends there; clients never see this
   * reason.
   */
  Type.Literal('cancelled'),
]);
export type FinishReason = Static<typeof FinishReasonSchema>;

/** A decimal number as text, because numbers with fractions are written differently by different languages: `0.7`. */
const DecimalSchema = Type.String({ pattern: '^-?(0|[1-9][0-9]{0,19})(\\.[0-9]{1,20})?$', maxLength: 42 });

/** Sampling parameters. Absent members were not applied; without a seed, sampling was random. */
export const SamplingSchema = Type.Object({
  temperature: DecimalSchema,
  top_p: Type.Optional(DecimalSchema),
  top_k: Type.Optional(DecimalSchema),
  min_p: Type.Optional(DecimalSchema),
  seed: Type.Optional(DecimalSchema),
  frequency_penalty: Type.Optional(DecimalSchema),
  presence_penalty: Type.Optional(DecimalSchema),
  repetition_penalty: Type.Optional(DecimalSchema),
});
export type ReceiptSampling = Static<typeof SamplingSchema>;

/** Version 2 receipts name the software and files that computed the response: claims of the agent, signed. */
const computedBy = {
  /** Name and build of the engine, and its compute device. Present in every version 2 receipt. */
  engine: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9 ._+()/:-]{0,127}$', maxLength: 128 }),
  /** SHA-256 of the weights; for several files, of their hexadecimal hashes, one per line. Absent: not computed yet. */
  weights_sha256: Sha256HexSchema,
  /** SHA-256 of the chat template's UTF-8. Left out: none was applied. */
  template_sha256: Sha256HexSchema,
  sampling: SamplingSchema,
} as const;

export const ReceiptSchema = Type.Object({
  v: Type.Union([Type.Literal(1), Type.Literal(2)]),
  job_id: JobIdSchema,
  provider_id: ProviderIdSchema,
  /** SHA-256 of the x963 enclave public key. */
  se_key_sha256: Sha256HexSchema,
  model: Type.String({ minLength: 1, maxLength: 256 }),
  endpoint: EndpointSchema,
  /** SHA-256 of the client's body as received. */
  request_sha256: Sha256HexSchema,
  overrides: OverridesSchema,
  /** SHA-256 of the signed response bytes B. */
  response_sha256: Sha256HexSchema,
  /** SHA-256 of each image's bytes, in order, whether the response embeds or links the images. */
  image_sha256: Type.Optional(Type.Array(Sha256HexSchema, { minItems: 1, maxItems: MAX_IMAGES })),
  client_nonce: Type.Optional(ClientNonceSchema),
  usage: UsageSchema,
  /** Tokens of think sections removed from the response. */
  hidden_tokens: Tokens,
  finish_reason: FinishReasonSchema,
  started_at: MillisecondsSchema,
  completed_at: MillisecondsSchema,
  engine: Type.Optional(computedBy.engine),
  weights_sha256: Type.Optional(computedBy.weights_sha256),
  template_sha256: Type.Optional(computedBy.template_sha256),
  sampling: Type.Optional(computedBy.sampling),
});
export type Receipt = Static<typeof ReceiptSchema>;

/** Origin of a response, as stated in a version 2 receipt. */
export type ComputedBy = Required<Pick<Receipt, 'engine'>> & Pick<Receipt, 'weights_sha256' | 'template_sha256' | 'sampling'>;

/** Problem with members that do not fit the receipt's version, or null. */
export function receiptVersionProblem(receipt: Pick<Receipt, 'v' | keyof ComputedBy>): string | null {
  if (receipt.v === 2) return receipt.engine === undefined ? '/engine is missing in version 2' : null;
  const extra = Object.keys(computedBy).find((member) => Object.hasOwn(receipt, member));
  return extra === undefined ? null : `/${extra} is no member of version 1`;
}

export const openReceipt = statementOpener('receipt', ReceiptSchema, receiptVersionProblem);
export const openReceiptAsync = asyncStatementOpener('receipt', ReceiptSchema, receiptVersionProblem);
