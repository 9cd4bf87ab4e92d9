/** Replies of the stdio contract. Unknown members are tolerated, for newer helpers. */
import { AttestationSchema, Base64Schema, SignedStatementSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { HELPER_ERROR_CODES } from './errors.js';
import type { Operation } from './requests.js';

const HelperKindSchema = Type.Union([Type.Literal('secure_enclave'), Type.Literal('simulated')]);
export type HelperKind = Static<typeof HelperKindSchema>;

const KeyProtectionSchema = AttestationSchema.properties.key_protection;
export type KeyProtection = Static<typeof KeyProtectionSchema>;

/** Results by operation, without `id` and `ok`. */
export const ResultSchemas = {
  hello: Type.Object({
    contract: Type.Integer(),
    kind: HelperKindSchema,
    version: Type.String({ maxLength: 64 }),
    /** Receipt versions that the helper signs; absent: 1. */
    receipts: Type.Optional(Type.Array(Type.Integer(), { maxItems: 16 })),
    /** Versions of end-to-end receipts that the helper signs; absent: none. */
    e2e_receipts: Type.Optional(Type.Array(Type.Integer(), { maxItems: 16 })),
  }),
  identity: Type.Object({
    /** base64 of the 65-byte x963 public key. */
    se_public_key: Type.String({ pattern: '^[A-Za-z0-9+/]{87}=$' }),
    key_protection: KeyProtectionSchema,
    /** True only for a key in a Secure Enclave. */
    secure_enclave: Type.Boolean(),
  }),
  attest: SignedStatementSchema,
  answer_challenge: SignedStatementSchema,
  sign_key: SignedStatementSchema,
  sign_response: Type.Object({
    /** base64 strict-DER signature over the 64 ASCII digits of the receipt's `response_sha256`. */
    signature: Base64Schema,
    receipt: SignedStatementSchema,
  }),
  sign_e2e_response: Type.Object({
    /** base64 strict-DER signature over the 64 ASCII digits of `response_sha256`. */
    signature: Base64Schema,
    /** The same signature over the digits of the receipt's `sealed_response_sha256`. */
    sealed_signature: Base64Schema,
    /** Statement of kind `e2e-receipt`. */
    receipt: SignedStatementSchema,
  }),
} as const satisfies Record<Operation, unknown>;

export type ResultOf<Op extends Operation> = Static<(typeof ResultSchemas)[Op]>;

/** A reply without the members of its result. `id` is null if the helper could not read the request's id. */
export const ReplySchema = Type.Union([
  Type.Object({ id: Type.Integer({ minimum: 0 }), ok: Type.Literal(true) }),
  Type.Object({
    id: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
    ok: Type.Literal(false),
    error: Type.Object({ code: Type.Enum([...HELPER_ERROR_CODES]), message: Type.String({ maxLength: 4096 }) }),
  }),
]);
