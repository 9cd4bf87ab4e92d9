/**
 * Preimage of the nonce in an Apple device attestation. The nonce binds the certificate to an enclave key.
 *
 * Nonce: `SHA-256("inference/mda/v1" 0x00 ‖ key ‖ u64be(epoch) ‖ random)`.
 */
import Type, { type Static } from 'typebox';
import { Base64Schema } from '../ids.js';

export const NoncePreimageSchema = Type.Object({
  /** base64 of the 65-byte x963 enclave key. */
  se_public_key: Base64Schema,
  /** Whole weeks since 1970-01-01T00:00:00Z. */
  epoch: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  /** base64 of 16 random bytes. */
  random: Base64Schema,
});
export type NoncePreimage = Static<typeof NoncePreimageSchema>;
