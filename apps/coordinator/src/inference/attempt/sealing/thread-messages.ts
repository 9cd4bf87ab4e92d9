/** What the coordinator and its sealing thread say to each other. */

/** 32 bytes each. */
export const ENC_BYTES = 32;
export const SECRET_BYTES = 32;
export const PAIR_BYTES = ENC_BYTES + SECRET_BYTES;

export interface Order {
  /** X25519 public key, 32 bytes. */
  readonly recipient: Uint8Array;
  readonly count: number;
}

export interface Delivery {
  readonly recipient: Uint8Array;
  /** `enc ‖ shared secret`, as often as was ordered; null: nothing can be sealed to this key. */
  readonly made: Uint8Array<ArrayBuffer> | null;
}
