/** HKDF with SHA-256 (RFC 5869), its two steps apart, as HPKE needs them. */
import { createHmac } from 'node:crypto';
import { concatBytes } from '../bytes.js';
import { plainView } from './digest.js';

export const HASH_BYTES = 32;

/** Section 2.2: the pseudorandom key, 32 bytes. */
export function hkdfExtract(salt: Uint8Array, input: Uint8Array): Uint8Array {
  return plainView(createHmac('sha256', salt).update(input).digest());
}

/** Section 2.3: `length` bytes, at most 255 × 32. Throws RangeError beyond. */
export function hkdfExpand(key: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  const blocks = Math.ceil(length / HASH_BYTES);
  if (!Number.isInteger(length) || length < 0 || blocks > 255) throw new RangeError(`HKDF cannot expand to ${length} bytes`);
  const output = new Uint8Array(blocks * HASH_BYTES);
  let previous: Uint8Array = new Uint8Array(0);
  for (let block = 1; block <= blocks; block++) {
    // One update: each call into the library costs as much as hashing a hundred bytes.
    previous = createHmac('sha256', key)
      .update(concatBytes(previous, info, Uint8Array.of(block)))
      .digest();
    output.set(previous, (block - 1) * HASH_BYTES);
  }
  return output.subarray(0, length);
}
