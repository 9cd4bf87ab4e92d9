/** Cryptographic primitives of end-to-end mode, implemented with noble, for browsers and every runtime without `node:crypto`. */
import type { E2eCrypto } from '@inference/protocol';
import { verifyP256InBrowser } from '@inference/verifier';
import { gcm } from '@noble/ciphers/aes.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { randomBytes } from '@noble/hashes/utils.js';

export const nobleE2eCrypto: E2eCrypto = {
  sha256: (bytes) => sha256(bytes),
  createSha256() {
    const hash = sha256.create();
    return {
      update: (bytes) => {
        hash.update(bytes);
      },
      digest: () => hash.digest(),
    };
  },
  hmacSha256(key, ...parts) {
    const mac = hmac.create(sha256, key);
    for (const part of parts) mac.update(part);
    return mac.digest();
  },
  aesGcmSeal: (key, nonce, aad, plaintext) => gcm(key, nonce, aad).encrypt(plaintext),
  aesGcmOpen(key, nonce, aad, sealed) {
    try {
      return gcm(key, nonce, aad).decrypt(sealed);
    } catch {
      return null;
    }
  },
  verifyP256: verifyP256InBrowser,
  generateX25519() {
    const { secretKey, publicKey } = x25519.keygen();
    return {
      publicKey,
      agree(peer) {
        if (peer.length !== 32) return null;
        try {
          return x25519.getSharedSecret(secretKey, peer);
        } catch {
          // noble refuses an all-zero secret (RFC 7748 section 6.1).
          return null;
        }
      },
    };
  },
  randomBytes: (length) => randomBytes(length),
};
