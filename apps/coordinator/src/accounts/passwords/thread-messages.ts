/** Messages between the coordinator and its password threads, and the parameters of stored hashes. */

/** Cost parameter N of the sign-in library (@better-auth/utils/password), so its stored hashes stay valid. */
export const SCRYPT_COST = 16_384;
/** The library's other parameters; the memory limit is twice the need of the default cost (RFC 7914). */
export const SCRYPT = { r: 16, p: 1, maxmem: 128 * SCRYPT_COST * 16 * 2 } as const;
export const KEY_BYTES = 64;

export interface Derivation {
  /** Normalised (NFKC). */
  readonly password: string;
  /** The stored hexadecimal text; its characters themselves are the salt. */
  readonly salt: string;
  /** Cost parameter N of scrypt: a power of two. */
  readonly cost: number;
}

export interface DerivedKey {
  /** Null: the derivation failed. */
  readonly key: Uint8Array | null;
}
