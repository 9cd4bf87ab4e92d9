/**
 * Receipt of a plain-mode job: hashes of request and response, and usage, signed by the enclave key. Basis of billing.
 *
 * Receipts of end-to-end jobs: `e2e-receipt.ts`.
 */
import Type, { type Static } from 'typebox';
import { EndpointSchema, JobIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from '../ids.js';
import { ClientNonceSchema, OverridesSchema } from '../job-context.js';
import { MAX_IMAGES } from '../wire/limits.js';
import { asyncStatementOpener, statementOpener } from './signed-statement.js';

const Tokens = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const UsageSchema = Type.Object({
  prompt_tokens: Tokens,
  /** All generated tokens, including the `hidden_tokens` of removed think segments. */
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
   * The coordinator cancelled a stream after the client disconnected. The signed response ends at that point.
   */
  Type.Literal('cancelled'),
]);
export type FinishReason = Static<typeof FinishReasonSchema>;

/** Decimal number as text, such as `0.7`, because languages format fractions differently. */
const DecimalSchema = Type.String({ pattern: '^-?(0|[1-9][0-9]{0,19})(\\.[0-9]{1,20})?$', maxLength: 42 });

/** Sampling parameters. Absent members were not applied; an absent seed was chosen at random. */
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

/** Members of version 2: the software and model files that computed the response. The agent claims them; nothing proves them. */
const computedBy = {
  /** Name and build of the engine, and its compute device. Required in version 2. */
  engine: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9 ._+()/:-]{0,127}$', maxLength: 128 }),
  /**
   * SHA-256 of the weights file. For several files: SHA-256 of their hex hashes, each followed by a newline. Absent: not computed yet.
   */
  weights_sha256: Sha256HexSchema,
  /** SHA-256 of the chat template's UTF-8. Absent: no template was applied. */
  template_sha256: Sha256HexSchema,
  sampling: SamplingSchema,
} as const;

export const ReceiptSchema = Type.Object({
  v: Type.Union([Type.Literal(1), Type.Literal(2)]),
  job_id: JobIdSchema,
  provider_id: ProviderIdSchema,
  /** SHA-256 of the enclave's public key in x963 encoding. */
  se_key_sha256: Sha256HexSchema,
  model: Type.String({ minLength: 1, maxLength: 256 }),
  endpoint: EndpointSchema,
  /** SHA-256 of the client's body as the coordinator received it. */
  request_sha256: Sha256HexSchema,
  /** Decisions of the coordinator for this job, such as a token limit; as in the job context. */
  overrides: OverridesSchema,
  /** SHA-256 of the signed response bytes (response hash). */
  response_sha256: Sha256HexSchema,
  /** SHA-256 of each generated image, in order. Present for embedded and for linked images. */
  image_sha256: Type.Optional(Type.Array(Sha256HexSchema, { minItems: 1, maxItems: MAX_IMAGES })),
  client_nonce: Type.Optional(ClientNonceSchema),
  usage: UsageSchema,
  /** Tokens of think segments that were removed from the response. */
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

/** Software and model files that computed a response, from a version 2 receipt. */
export type ComputedBy = Required<Pick<Receipt, 'engine'>> & Pick<Receipt, 'weights_sha256' | 'template_sha256' | 'sampling'>;

/** Describes a member that does not fit the receipt's version; null if all fit. */
export function receiptVersionProblem(receipt: Pick<Receipt, 'v' | keyof ComputedBy>): string | null {
  if (receipt.v === 2) return receipt.engine === undefined ? '/engine is missing in version 2' : null;
  const extra = Object.keys(computedBy).find((member) => Object.hasOwn(receipt, member));
  return extra === undefined ? null : `/${extra} is not allowed in version 1`;
}

export const openReceipt = statementOpener('receipt', ReceiptSchema, receiptVersionProblem);
export const openReceiptAsync = asyncStatementOpener('receipt', ReceiptSchema, receiptVersionProblem);
