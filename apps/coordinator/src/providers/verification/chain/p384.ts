/** Verifies ECDSA signatures on P-384 with SHA-384 (FIPS 186-5), the only kind in device certificate chains. */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { concatBytes, equalBytes, fromHex } from '@inference/protocol';
import { cachedImport } from '@inference/protocol/crypto';
import { BoundedMap } from '@inference/scheduler/bounded-map';

/** DER prefix of a SubjectPublicKeyInfo with an uncompressed P-384 point (RFC 5480 section 2). */
const SPKI_PREFIX = fromHex('3076301006072a8648ce3d020106052b81040022036200');
const POINT_BYTES = 97;

/** The 97-byte point of a SubjectPublicKeyInfo. Null for other keys and for points off the curve. */
export function pointOf(publicKeyInfo: Uint8Array): Uint8Array | null {
  const head = publicKeyInfo.subarray(0, SPKI_PREFIX.length);
  const point = Uint8Array.from(publicKeyInfo.subarray(SPKI_PREFIX.length));
  if (!equalBytes(head, SPKI_PREFIX) || point.length !== POINT_BYTES || point[0] !== 0x04) return null;
  return importPoint(point) === null ? null : point;
}

/** Whether `signature` (DER) over `message` is valid under the key `point`. Never throws. */
export function verifyP384(point: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const key = importPoint(point);
  if (key === null || !isStrictSignature(signature)) return false;
  return verify('sha384', message, { key, dsaEncoding: 'der' }, signature);
}

/** Hashes of key, message and signature of valid signatures. */
const verified = new BoundedMap<string, true>(64);

/** {@link verifyP384} with a cache of valid signatures. Few issuers sign all chains, and a verification takes a millisecond. */
export function verifyP384Cached(point: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const parts = [point, message, signature].map((part) => createHash('sha256').update(part).digest('hex'));
  const name = parts.join();
  if (verified.has(name)) return true;
  if (!verifyP384(point, message, signature)) return false;
  verified.set(name, true);
  return true;
}

const importCached = cachedImport(
  64,
  (point): KeyObject => createPublicKey({ key: Buffer.from(concatBytes(SPKI_PREFIX, point)), format: 'der', type: 'spki' }),
);

function importPoint(point: Uint8Array): KeyObject | null {
  try {
    return importCached(point);
  } catch {
    // Importing rejects points off the curve (SEC 1 section 3.2.2.1).
    return null;
  }
}

/**
 * Whether `der` is a SEQUENCE of two positive, minimal INTEGERs, in at most 104 bytes. The crypto library checks that both are below the
 * group order.
 */
function isStrictSignature(der: Uint8Array): boolean {
  if (der[0] !== 0x30 || der[1] !== der.length - 2 || der.length > 104) return false;
  const afterR = afterInteger(der, 2);
  return afterR !== null && afterInteger(der, afterR) === der.length;
}

function afterInteger(der: Uint8Array, offset: number): number | null {
  const length = der[offset + 1];
  if (der[offset] !== 0x02 || length === undefined || length === 0 || offset + 2 + length > der.length) return null;
  const [first = 0, second = 0] = der.subarray(offset + 2, offset + 2 + length);
  if (first >= 0x80 || (first === 0 && (length === 1 || second < 0x80))) return null;
  return offset + 2 + length;
}
