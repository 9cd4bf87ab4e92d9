/** Verifies ECDSA on P-256 with SHA-256 (FIPS 186-5). Checks encodings first, because OpenSSL also accepts other encodings. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { concatBytes, fromHex, toBase64Url } from '../bytes.js';
import { signatureFromDer } from '../ecdsa-der.js';
import type { VerifyP256, VerifyP256Async } from '../statements/signed-statement.js';
import { cachedImport } from './key-cache.js';

const X963_BYTES = 65;
/** DER before the point in the SubjectPublicKeyInfo of an uncompressed P-256 key (RFC 5480 section 2). */
const SPKI_PREFIX = fromHex('3059301306072a8648ce3d020106082a8648ce3d030107034200');

const importP256 = cachedImport(256, (x963): KeyObject => {
  requireUncompressed(x963);
  // Measured: importing a JWK takes less than half the time of importing SPKI.
  const [x, y] = [toBase64Url(x963.subarray(1, 33)), toBase64Url(x963.subarray(33))];
  return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
});

/** Verifies a strict-DER signature by a 65-byte x963 public key. Never throws: false on any malformed key or signature. */
export const verifyP256: VerifyP256 = (publicKey, message, signatureDer) => {
  if (signatureFromDer(signatureDer) === null) return false;
  try {
    return verify('sha256', message, importP256(publicKey), signatureDer);
  } catch {
    // The import throws if the point is not on the curve (SEC 1 section 3.2.2.1).
    return false;
  }
};

/** Like {@link verifyP256}, but on the thread pool: a verification takes as long as relaying five tokens. */
export const verifyP256Async: VerifyP256Async = (publicKey, message, signatureDer) => {
  if (signatureFromDer(signatureDer) === null) return Promise.resolve(false);
  return new Promise((resolve) => {
    try {
      verify('sha256', message, importP256(publicKey), signatureDer, (error, verified) => resolve(error === null && verified));
    } catch {
      resolve(false);
    }
  });
};

/** Converts a 65-byte x963 public key to SPKI PEM, which openssl reads. Throws RangeError on any other encoding. */
export function p256PublicKeyPem(x963: Uint8Array): string {
  const base64 = Buffer.from(p256Spki(x963)).toString('base64');
  return `-----BEGIN PUBLIC KEY-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END PUBLIC KEY-----\n`;
}

function p256Spki(x963: Uint8Array): Buffer {
  requireUncompressed(x963);
  return Buffer.from(concatBytes(SPKI_PREFIX, x963));
}

/** Rejects other encodings of 65 bytes: OpenSSL also accepts the hybrid forms 06 and 07. */
function requireUncompressed(x963: Uint8Array): void {
  if (x963.length !== X963_BYTES || x963[0] !== 0x04) throw new RangeError('not an uncompressed P-256 point');
}
