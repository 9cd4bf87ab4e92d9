/** Messages between `PasswordHasher` and its worker threads, and the scrypt parameters of stored hashes. */

/** Cost parameter N. Equals better-auth's (@better-auth/utils/password), so that hashes of either verify. */
export const SCRYPT_COST = 16_384;
/** better-auth's other parameters. scrypt needs 128·N·r bytes (RFC 7914); `maxmem` is twice that. */
export const SCRYPT = { r: 16, p: 1, maxmem: 128 * SCRYPT_COST * 16 * 2 } as const;
export const KEY_BYTES = 64;

export interface Derivation {
  /** Normalised to Unicode NFKC. */
  readonly password: string;
  /** Hexadecimal text as stored. Not decoded: the characters themselves are the salt. */
  readonly salt: string;
  /** Cost parameter N of scrypt: a power of two. */
  readonly cost: number;
}

export interface DerivedKey {
  /** Null if the derivation failed. */
  readonly key: Uint8Array | null;
}
