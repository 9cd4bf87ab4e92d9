/** Interface of the cryptographic primitives of the end-to-end mode. Node uses `nodeE2eCrypto`; browsers have another implementation. */

import type { VerifyP256 } from '../statements/signed-statement.js';

/** X25519 key pair (RFC 7748). The private key never leaves the implementation. */
export interface X25519KeyPair {
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
  /** Shared secret with a public key; null if the key is not 32 bytes or has small order (RFC 9180 section 7.1.4). */
  agree(publicKey: Uint8Array): Uint8Array | null;
}

/** Incremental SHA-256. */
export interface Sha256Stream {
  update(bytes: Uint8Array): void;
  /** Ends the stream and returns 32 bytes. */
  digest(): Uint8Array;
}

export interface E2eCrypto {
  /** FIPS 180-4, 32 bytes. */
  sha256(bytes: Uint8Array): Uint8Array;
  createSha256(): Sha256Stream;
  /** RFC 2104 over the concatenated parts, 32 bytes. */
  hmacSha256(key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array;
  /** AES-256-GCM (NIST SP 800-38D): ciphertext ‖ 16-byte tag. `key` has 32 bytes, `nonce` 12. */
  aesGcmSeal(key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Uint8Array;
  /** Opens ciphertext ‖ tag. Returns null if the tag does not verify. */
  aesGcmOpen(key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null;
  /** ECDSA P-256 with SHA-256 (FIPS 186-5), strict DER. */
  readonly verifyP256: VerifyP256;
  generateX25519(): X25519KeyPair;
  randomBytes(length: number): Uint8Array;
}
