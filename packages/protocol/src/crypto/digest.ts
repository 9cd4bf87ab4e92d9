/** SHA-256 (FIPS 180-4), and the provider and key ids that derive from it. */
import { hash } from 'node:crypto';
import { type KeyId, keyIdFromKeyHash, type ProviderId, providerIdFromKeyHash } from '../ids.js';

export function sha256(bytes: Uint8Array): Uint8Array {
  // Not a Buffer: its `slice` shares memory, where callers of a Uint8Array expect a copy.
  return plainView(hash('sha256', bytes, 'buffer'));
}

/** Lowercase hexadecimal SHA-256. */
export function sha256Hex(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex');
}

/** Provider id of a 65-byte x963 enclave public key. */
export function providerIdOf(x963: Uint8Array): ProviderId {
  return providerIdFromKeyHash(sha256(x963));
}

/** Key id of a 32-byte X25519 public key. */
export function keyIdOf(x25519: Uint8Array): KeyId {
  return keyIdFromKeyHash(sha256(x25519));
}

/** Returns a Uint8Array view of a Buffer's memory. */
export function plainView(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}
