/** Messages between `EncapsulationPool` and its worker thread, and the byte sizes in them. */

/** Sizes of one HPKE encapsulation: `enc` (encapsulated key) and shared secret, in bytes. */
export const ENC_BYTES = 32;
export const SECRET_BYTES = 32;
export const PAIR_BYTES = ENC_BYTES + SECRET_BYTES;

export interface EncapsulationRequest {
  /** X25519 public key, 32 bytes. */
  readonly recipient: Uint8Array;
  readonly count: number;
}

export interface EncapsulationBatch {
  readonly recipient: Uint8Array;
  /** The `count` of the request. */
  readonly count: number;
  /** `enc ‖ shared secret`, repeated `count` times, or null if the encapsulation failed. */
  readonly pairs: Uint8Array<ArrayBuffer> | null;
}
