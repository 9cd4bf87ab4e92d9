/** `nobleLogCrypto`: hash and signature functions for verifying the transparency log in browsers and Node.js. */
import type { LogCrypto } from '@inference/protocol';
import { ed25519 } from '@noble/curves/ed25519.js';
import { sha256 } from '@noble/hashes/sha2.js';

export const nobleLogCrypto: LogCrypto = {
  sha256: (bytes) => sha256(bytes),
  verifyEd25519(publicKey, message, signature) {
    if (publicKey.length !== 32 || signature.length !== 64) return false;
    try {
      return ed25519.verify(signature, message, publicKey, { zip215: false });
    } catch {
      // The key is not a point of the curve.
      return false;
    }
  },
};
