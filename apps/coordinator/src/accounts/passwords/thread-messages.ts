/** Messages between the coordinator and its password threads, and the parameters of stored hashes. */

/** Parameters of the sign-in library (@better-auth/utils/password), so its stored hashes stay valid. */
export const SCRYPT = { N: 16_384, r: 16, p: 1, maxmem: 128 * 16_384 * 16 * 2 } as const;
export const KEY_BYTES = 64;

export interface Derivation {
  /** Normalised (NFKC). */
  readonly password: string;
  /** As stored: the hexadecimal text itself is the salt. */
  readonly salt: string;
}

export interface DerivedKey {
  /** Null: the derivation failed. */
  readonly key: Uint8Array | null;
}
