/** Primitives of the transparency log, passed in by the caller: `nodeLogCrypto` of `@inference/protocol/crypto`, or noble in browsers. */
export interface LogCrypto {
  /** FIPS 180-4, 32 bytes. */
  sha256(bytes: Uint8Array): Uint8Array;
  /** RFC 8032. Gives false on anything malformed; never throws. */
  verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
}

export type Sha256 = LogCrypto['sha256'];

/** A checkpoint, note, proof, tile or entry that the formats do not allow. */
export class LogFormatError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LogFormatError';
  }
}
