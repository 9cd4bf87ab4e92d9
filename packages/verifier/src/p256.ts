/** ECDSA P-256 with SHA-256 (FIPS 186-5) for browsers, on noble. Accepts the same inputs as `node:crypto` in packages/protocol. */
import { fromBase64, signatureFromDer, type VerifyP256 } from '@inference/protocol';
import { p256 } from '@noble/curves/nist.js';

/** Verifies a strict-DER signature by a 65-byte x963 public key. Returns false for malformed input; never throws. */
export const verifyP256InBrowser: VerifyP256 = (publicKey, message, signatureDer) => {
  if (publicKey.length !== 65 || publicKey[0] !== 0x04) return false;
  const compact = signatureFromDer(signatureDer);
  if (compact === null) return false;
  try {
    return p256.verify(compact, message, publicKey, { prehash: true, lowS: false, format: 'compact' });
  } catch {
    // The key is not a point of the curve.
    return false;
  }
};

/** Decodes an enclave key to its 65 bytes (x963). Returns null unless the key is an uncompressed point of the curve. */
export function enclaveKeyBytes(publicKey: Uint8Array | string): Uint8Array | null {
  try {
    const bytes = typeof publicKey === 'string' ? fromBase64(publicKey) : publicKey;
    if (bytes.length !== 65 || bytes[0] !== 0x04) return null;
    p256.Point.fromBytes(bytes).assertValidity();
    return bytes;
  } catch {
    return null;
  }
}
