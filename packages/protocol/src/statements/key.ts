/** Key statement: binds a short-lived X25519 sealing key to the attestation, signed by the enclave key. */
import Type, { type Static } from 'typebox';
import { Base64Schema, KeyIdSchema, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from '../ids.js';
import { statementOpener } from './signed-statement.js';

/** Maximum lifetime of a sealing key, in milliseconds. */
export const MAX_KEY_LIFETIME_MS = 60 * 60_000;

const KeyStatementSchema = Type.Object({
  v: Type.Literal(1),
  provider_id: ProviderIdSchema,
  key_id: KeyIdSchema,
  /** base64 of the 32-byte X25519 public key. */
  x25519_public_key: Base64Schema,
  not_before: MillisecondsSchema,
  not_after: MillisecondsSchema,
  /** SHA-256 of the attestation statement's payload bytes. */
  attestation_sha256: Sha256HexSchema,
});
export type KeyStatement = Static<typeof KeyStatementSchema>;

export const openKeyStatement = statementOpener('key', KeyStatementSchema);
