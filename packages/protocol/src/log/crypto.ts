/**
 * Interface of the cryptographic primitives of the transparency log.
 *
 * Callers pass `nodeLogCrypto` of `@inference/protocol/crypto` in Node, or an implementation on noble in browsers.
 */
export interface LogCrypto {
  /** FIPS 180-4, 32 bytes. */
  sha256(bytes: Uint8Array): Uint8Array;
  /** RFC 8032. Returns false on malformed input; never throws. */
  verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
}

export type Sha256 = LogCrypto['sha256'];

/** A malformed checkpoint, note, proof, tile or entry. */
export class LogFormatError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LogFormatError';
  }
}
