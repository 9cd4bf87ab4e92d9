/** What binds a chain of certificates to an enclave key: the freshness code is a nonce that the key went into. */
import { concatBytes, fromBase64OrNull, type NoncePreimage, utf8 } from '@inference/protocol';
import { sha256 } from '@noble/hashes/sha2.js';

/** `SHA-256("inference/mda/v1" 0x00 ‖ x963 key ‖ u64be(epoch) ‖ 16 random bytes)`; null when the preimage is malformed. */
export function deviceNonce(preimage: NoncePreimage): Uint8Array | null {
  const key = fromBase64OrNull(preimage.se_public_key);
  const random = fromBase64OrNull(preimage.random);
  if (key?.length !== 65 || random?.length !== 16 || !Number.isSafeInteger(preimage.epoch) || preimage.epoch < 0) return null;
  const epoch = new Uint8Array(8);
  new DataView(epoch.buffer).setBigUint64(0, BigInt(preimage.epoch));
  return sha256(concatBytes(utf8('inference/mda/v1\0'), key, epoch, random));
}

/** The form that an older network used: SHA-256 over the ASCII of the key's base64. It binds as well, but for ever. */
export function legacyNonce(publicKeyBase64: string): Uint8Array {
  return sha256(utf8(publicKeyBase64));
}

/** Freshness code of an ACME order: SHA-256 of the challenge's token. */
export function acmeFreshness(token: string): Uint8Array {
  return sha256(utf8(token));
}
