/** Verifies Ed25519 signatures (RFC 8032) of agent releases. Builds embed the public keys, 32 raw bytes in base64. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { concatBytes, fromBase64 } from '../bytes.js';
import { type Release, releaseBytes } from '../release.js';

/** DER before the 32 key bytes in the SubjectPublicKeyInfo of an Ed25519 key (RFC 8410 section 4). */
const SPKI_PREFIX = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00);
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** Whether any of the keys signed the release. Throws on a malformed key, which means a broken build. */
export function verifyRelease(release: Release, publicKeys: readonly string[]): boolean {
  let signature: Uint8Array;
  try {
    signature = fromBase64(release.signature);
  } catch {
    return false;
  }
  if (signature.length !== SIGNATURE_BYTES) return false;
  const bytes = releaseBytes(release);
  return publicKeys.some((key) => verify(null, bytes, releaseKey(key), signature));
}

/** Imports a release key. Throws if the text is not 32 bytes in base64. */
export function releaseKey(text: string): KeyObject {
  const raw = fromBase64(text);
  if (raw.length !== KEY_BYTES) throw new Error('a release key has 32 bytes');
  return createPublicKey({ key: Buffer.from(concatBytes(SPKI_PREFIX, raw)), format: 'der', type: 'spki' });
}
