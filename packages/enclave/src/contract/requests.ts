/**
 * Requests to the enclave helper: one JSON object per line. Operations sign statements of fixed kinds and the hex digits of response
 * hashes, never other bytes.
 */
import { AttestationSchema, E2eReceiptSchema, MillisecondsSchema, ReceiptSchema, Sha256HexSchema } from '@inference/protocol';
import Type, { type Static, type TSchema } from 'typebox';

/** Version of the contract; helpers with another version are refused. */
export const CONTRACT_VERSION = 1;
/** Maximum bytes of a line in both directions, without line feed. */
export const MAX_LINE_BYTES = 64 * 1024;

/** Receipt without the signer's members; the helper adds `provider_id` and `se_key_sha256`. */
export const ReceiptDraftSchema = closed(Type.Omit(ReceiptSchema, ['provider_id', 'se_key_sha256']));
export type ReceiptDraft = Static<typeof ReceiptDraftSchema>;

/** End-to-end receipt without the signer's members, as {@link ReceiptDraftSchema}. */
export const E2eReceiptDraftSchema = closed(Type.Omit(E2eReceiptSchema, ['provider_id', 'se_key_sha256']));
export type E2eReceiptDraft = Static<typeof E2eReceiptDraftSchema>;

/** The requesting program, as recorded in the attestation. */
const AgentSchema = closed(AttestationSchema.properties.agent);
export type Agent = Static<typeof AgentSchema>;

/** Parameters by operation, without `id` and `op`. */
export const ParameterSchemas = {
  hello: closed(Type.Object({})),
  identity: closed(Type.Object({})),
  attest: closed(Type.Object({ agent: AgentSchema })),
  answer_challenge: closed(
    Type.Object({
      /** base64 of exactly 32 bytes. */
      nonce: Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' }),
      session_id: Type.String({ minLength: 1, maxLength: 64 }),
    }),
  ),
  sign_key: closed(
    Type.Object({
      /** base64 of the 32 raw bytes. */
      x25519_public_key: Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' }),
      not_before: MillisecondsSchema,
      not_after: MillisecondsSchema,
      attestation_sha256: Sha256HexSchema,
    }),
  ),
  sign_response: closed(Type.Object({ receipt: ReceiptDraftSchema })),
  /** Supported by helpers that report `e2e_receipts`. */
  sign_e2e_response: closed(
    Type.Object({
      /** SHA-256 of the response's plaintext, which the receipt does not name. */
      response_sha256: Sha256HexSchema,
      receipt: E2eReceiptDraftSchema,
    }),
  ),
} as const;

export type Operation = keyof typeof ParameterSchemas;
export type ParametersOf<Op extends Operation> = Static<(typeof ParameterSchemas)[Op]>;

/** Id of a request. The client counts ids up from 1 for each helper process. */
export const RequestIdSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** The same schema with `additionalProperties: false` on every object, because an enclave must not sign unknown content. */
function closed<Schema extends TSchema>(schema: Schema): Schema {
  return closedNode(schema) as Schema;
}

function closedNode(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closedNode);
  if (typeof node !== 'object' || node === null) return node;
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) copy[key] = closedNode(value);
  if (copy.type === 'object') copy.additionalProperties = false;
  return copy;
}
