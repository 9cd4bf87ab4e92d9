/**
 * ECDSA P-256 with SHA-256 (FIPS 186-5) for browsers, on noble. It accepts exactly what the protocol's own verifier does:
 * uncompressed points of the curve, strict DER, high S as well as low.
 */
import type { VerifyP256 } from '@inference/protocol';
import { signatureFromDer } from '@inference/protocol';
import { p256 } from '@noble/curves/nist.js';

/** Verifies a strict-DER signature by a 65-byte x963 public key. Gives false on anything malformed; never throws. */
export const verifyP256InBrowser: VerifyP256 = (publicKey, message, signatureDer) => {
  if (publicKey.length !== 65 || publicKey[0] !== 0x04) return false;
  const compact = signatureFromDer(signatureDer);
  if (compact === null) return false;
  try {
    return p256.verify(compact, message, publicKey, { prehash: true, lowS: false, format: 'compact' });
  } catch {
    // The key is no point of the curve: nothing verifies by it.
    return false;
  }
};
