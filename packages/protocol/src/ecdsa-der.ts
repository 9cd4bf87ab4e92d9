/**
 * Strict DER parser for ECDSA P-256 signatures (SEC 1 C.8, X.690).
 *
 * High S is accepted, because enclaves produce it. Two valid signatures of one message are thus possible: never use a signature as an id.
 */

/** Order of P-256 (SEC 2 section 2.4.2), big endian. */
const ORDER = new Uint8Array([
  0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e,
  0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
]);

const SCALAR_BYTES = 32;

/** Converts a strict-DER signature to `r ‖ s` (64 bytes, IEEE P1363); null if malformed or out of range. */
export function signatureFromDer(der: Uint8Array): Uint8Array | null {
  // SEQUENCE of two INTEGERs, at most 70 bytes, so the length always has the one-byte short form.
  if (der.length < 8 || der.length > 72 || der[0] !== 0x30 || der[1] !== der.length - 2) return null;
  const compact = new Uint8Array(2 * SCALAR_BYTES);
  const afterR = readScalar(der, 2, compact.subarray(0, SCALAR_BYTES));
  if (afterR === null) return null;
  return readScalar(der, afterR, compact.subarray(SCALAR_BYTES)) === der.length ? compact : null;
}

/** Reads one INTEGER into `scalar`. Returns the offset after the INTEGER; null if invalid. */
function readScalar(der: Uint8Array, offset: number, scalar: Uint8Array): number | null {
  const length = der[offset + 1];
  if (der[offset] !== 0x02 || length === undefined || length === 0 || length > SCALAR_BYTES + 1) return null;
  const end = offset + 2 + length;
  if (end > der.length) return null;
  const content = der.subarray(offset + 2, end);
  const first = content[0] as number;
  if (first >= 0x80) return null;
  // X.690 section 8.3.2: a leading zero byte is valid only before a set top bit.
  if (first === 0 && (length === 1 || (content[1] as number) < 0x80)) return null;
  const magnitude = first === 0 ? content.subarray(1) : content;
  if (magnitude.length > SCALAR_BYTES) return null;
  scalar.set(magnitude, SCALAR_BYTES - magnitude.length);
  return isBelowOrder(scalar) ? end : null;
}

function isBelowOrder(scalar: Uint8Array): boolean {
  for (let i = 0; i < SCALAR_BYTES; i++) {
    const difference = (scalar[i] as number) - (ORDER[i] as number);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
