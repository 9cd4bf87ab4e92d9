/**
 * Receipt of a job in the end-to-end mode, signed by the enclave key. Basis of billing.
 *
 * Contains keyed commitments instead of plaintext hashes, because the coordinator could test guesses against plain hashes.
 */
import Type, { type Static } from 'typebox';
import { EndpointSchema, JobIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from '../ids.js';
import { MAX_IMAGES } from '../wire/limits.js';
import { FinishReasonSchema, ReceiptSchema } from './receipt.js';
import { asyncStatementOpener, statementOpener } from './signed-statement.js';

/** `refused`: the provider answered with an error status. The receipt then has no usage. */
export const E2eFinishReasonSchema = Type.Union([...FinishReasonSchema.anyOf, Type.Literal('refused')]);
export type E2eFinishReason = Static<typeof E2eFinishReasonSchema>;

/** Lowercase hex HMAC-SHA256 under a key that only client and provider know (`E2eCommitments`). */
const CommitmentSchema = Sha256HexSchema;
const { usage, hidden_tokens, model, engine, weights_sha256, template_sha256, sampling } = ReceiptSchema.properties;

export const E2eReceiptSchema = Type.Object({
  v: Type.Literal(1),
  job_id: JobIdSchema,
  provider_id: ProviderIdSchema,
  /** SHA-256 of the enclave's public key in x963 encoding. */
  se_key_sha256: Sha256HexSchema,
  model,
  endpoint: EndpointSchema,
  /** SHA-256 of the canonical JSON of the sealed request's context (`E2eContext`). */
  context_sha256: Sha256HexSchema,
  /** SHA-256 of the whole sealed request. */
  sealed_request_sha256: Sha256HexSchema,
  /** SHA-256 of the sealed answer before its final frame, excluding keep-alives. */
  sealed_response_sha256: Sha256HexSchema,
  request_commitment: CommitmentSchema,
  response_commitment: CommitmentSchema,
  /** One per image, in order. */
  image_commitments: Type.Optional(Type.Array(CommitmentSchema, { minItems: 1, maxItems: MAX_IMAGES })),
  /** Plaintext bytes of the answer's body and image parts. */
  response_bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  /** Absent if and only if `finish_reason` is `refused`. */
  usage: Type.Optional(usage),
  hidden_tokens,
  finish_reason: E2eFinishReasonSchema,
  started_at: MillisecondsSchema,
  completed_at: MillisecondsSchema,
  engine,
  weights_sha256,
  template_sha256,
  sampling,
});
export type E2eReceipt = Static<typeof E2eReceiptSchema>;

/** Describes members that contradict each other; null if there are none. */
export function e2eReceiptProblem(receipt: Pick<E2eReceipt, 'finish_reason' | 'usage' | 'hidden_tokens' | 'engine'>): string | null {
  if (receipt.finish_reason === 'refused') {
    if (receipt.usage !== undefined) return '/usage is no member of a refusal';
    return receipt.hidden_tokens === 0 ? null : '/hidden_tokens of a refusal is not 0';
  }
  if (receipt.usage === undefined) return '/usage is missing';
  return receipt.engine === undefined ? '/engine is missing' : null;
}

export const openE2eReceipt = statementOpener('e2e-receipt', E2eReceiptSchema, e2eReceiptProblem);
export const openE2eReceiptAsync = asyncStatementOpener('e2e-receipt', E2eReceiptSchema, e2eReceiptProblem);

/** Receipt members that coordinators or clients can compute themselves. */
export type ExpectedE2eReceipt = Pick<
  E2eReceipt,
  'job_id' | 'provider_id' | 'model' | 'endpoint' | 'context_sha256' | 'sealed_request_sha256' | 'sealed_response_sha256'
> &
  Partial<Pick<E2eReceipt, 'se_key_sha256' | 'request_commitment' | 'response_commitment' | 'response_bytes' | 'image_commitments'>>;

/** Name of the first receipt member that differs from its expected value; null if all match. */
export function e2eReceiptMismatch(receipt: E2eReceipt, expected: ExpectedE2eReceipt): keyof ExpectedE2eReceipt | null {
  for (const member of Object.keys(expected) as (keyof ExpectedE2eReceipt)[]) {
    const value = expected[member];
    // Arrays contain only hexadecimal strings, so `String` joins them unambiguously.
    if (value !== undefined && String(receipt[member]) !== String(value)) return member;
  }
  return null;
}
