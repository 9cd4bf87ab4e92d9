/** SHA-256 for browsers, on noble. */
import { toHex } from '@inference/protocol';
import { sha256 } from '@noble/hashes/sha2.js';

/** Lowercase hexadecimal SHA-256, as hashes of requests and responses are written. */
export function sha256Hex(bytes: Uint8Array): string {
  return toHex(sha256(bytes));
}
