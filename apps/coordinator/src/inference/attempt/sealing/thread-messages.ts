/** Messages between the coordinator and its sealing thread. */

/** 32 bytes each. */
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
  /** `enc ‖ shared secret`, repeated `count` times; null: the recipient's key is malformed. */
  readonly pairs: Uint8Array<ArrayBuffer> | null;
}
