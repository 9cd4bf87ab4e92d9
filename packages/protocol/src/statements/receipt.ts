/**
 * The receipt: what one job was, what it produced and what it used, signed by the enclave. It reaches the client with the
 * response, and the coordinator bills by it (design: who renders, who relays).
 */
import Type, { type Static } from 'typebox';
import { EndpointSchema, JobIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from '../ids.js';
import { ClientNonceSchema, OverridesSchema } from '../job-context.js';
import { MAX_IMAGES } from '../wire/limits.js';
import { asyncStatementOpener, statementOpener } from './signed-statement.js';

const Tokens = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const UsageSchema = Type.Object({
  prompt_tokens: Tokens,
  /** Every generated token, hidden ones included. */
  completion_tokens: Tokens,
  total_tokens: Tokens,
  /** Of the prompt tokens, those whose prefix another request had left behind. */
  cached_tokens: Type.Optional(Tokens),
  /** Images that were made. */
  images: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_IMAGES })),
});
export type Usage = Static<typeof UsageSchema>;

export const FinishReasonSchema = Type.Union([
  Type.Literal('stop'),
  Type.Literal('length'),
  Type.Literal('tool_calls'),
  /** The coordinator cancelled a stream because its client had gone; the response ends where it stood. Never seen by a client's answer. */
  Type.Literal('cancelled'),
]);
export type FinishReason = Static<typeof FinishReasonSchema>;

export const ReceiptSchema = Type.Object({
  v: Type.Literal(1),
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
  /** SHA-256 of each image's bytes, in order, whether the response holds them or names where they are. */
  image_sha256: Type.Optional(Type.Array(Sha256HexSchema, { minItems: 1, maxItems: MAX_IMAGES })),
  client_nonce: Type.Optional(ClientNonceSchema),
  usage: UsageSchema,
  /** Tokens of think sections that were stripped from the response. */
  hidden_tokens: Tokens,
  finish_reason: FinishReasonSchema,
  started_at: MillisecondsSchema,
  completed_at: MillisecondsSchema,
});
export type Receipt = Static<typeof ReceiptSchema>;

export const openReceipt = statementOpener('receipt', ReceiptSchema);
export const openReceiptAsync = asyncStatementOpener('receipt', ReceiptSchema);
