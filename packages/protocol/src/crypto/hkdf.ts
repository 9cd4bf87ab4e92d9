/** HKDF with SHA-256 (RFC 5869), as two separate steps for HPKE. */
import { createHash, hash } from 'node:crypto';
import { plainView } from './digest.js';

export const HASH_BYTES = 32;

/**
 * Reused buffer in which `hmac` joins its inputs, because one hash call is faster than several updates. Cleared after every use.
 */
const joined = new Uint8Array(1024);
const NOTHING = new Uint8Array(0);
const COUNTERS = Array.from({ length: 256 }, (_, block) => Uint8Array.of(block));

/** HKDF-Extract (section 2.2): 32-byte pseudorandom key from the concatenated parts of `input`. */
export function hkdfExtract(salt: Uint8Array, ...input: readonly Uint8Array[]): Uint8Array {
  return plainView(hmac(salt, input));
}

/** HKDF-Expand (section 2.3) with the concatenated parts of `info`. Throws RangeError if `length` exceeds 255 × 32 bytes. */
export function hkdfExpand(key: Uint8Array, length: number, ...info: readonly Uint8Array[]): Uint8Array {
  const blocks = Math.ceil(length / HASH_BYTES);
  if (!Number.isInteger(length) || length < 0 || blocks > 255) throw new RangeError(`HKDF cannot expand to ${length} bytes`);
  if (blocks === 1) return plainView(hmac(key, [...info, COUNTERS[1] as Uint8Array])).subarray(0, length);
  const output = new Uint8Array(blocks * HASH_BYTES);
  let previous: Uint8Array = NOTHING;
  for (let block = 1; block <= blocks; block++) {
    previous = hmac(key, [previous, ...info, COUNTERS[block] as Uint8Array]);
    output.set(previous, (block - 1) * HASH_BYTES);
  }
  return output.subarray(0, length);
}

/** Block size of SHA-256, to which HMAC pads its key (RFC 2104 section 2). */
const BLOCK_BYTES = 64;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
const outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES);

/** HMAC (RFC 2104) as two one-shot hashes, because an Hmac object costs more than hashing a short input. */
function hmac(key: Uint8Array, parts: readonly Uint8Array[]): Buffer {
  let length = BLOCK_BYTES;
  for (const part of parts) length += part.length;
  const inner = length <= joined.length ? joined.subarray(0, length) : new Uint8Array(length);
  const block = key.length <= BLOCK_BYTES ? key : createHash('sha256').update(key).digest();
  for (let i = 0; i < BLOCK_BYTES; i++) {
    const byte = i < block.length ? (block[i] as number) : 0;
    inner[i] = byte ^ INNER_PAD;
    outer[i] = byte ^ OUTER_PAD;
  }
  let offset = BLOCK_BYTES;
  for (const part of parts) {
    inner.set(part, offset);
    offset += part.length;
  }
  outer.write(hash('sha256', inner, 'hex'), BLOCK_BYTES, 'hex');
  const digest = hash('sha256', outer, 'buffer');
  inner.fill(0);
  outer.fill(0);
  return digest;
}
