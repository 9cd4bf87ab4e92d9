/** `E2eCrypto` on `node:crypto`: the primitives of the end-to-end mode. */
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { concatBytes } from '../bytes.js';
import type { E2eCrypto, X25519KeyPair } from '../e2e/crypto.js';
import { openAesGcm, TAG_BYTES } from './aead-sequence.js';
import { plainView, sha256 } from './digest.js';
import { hkdfExtract } from './hkdf.js';
import { verifyP256 } from './p256.js';
import { SealingError } from './sealing-error.js';
import { generateSealingKeyPair, importRecipientKey, importX25519, type SealingKeyPair, sharedSecret } from './x25519.js';

const OPTIONS = { authTagLength: TAG_BYTES };

/** Converts a provider's sealing key for `openE2eRequest`. */
export function e2eKeyPair(pair: SealingKeyPair): X25519KeyPair {
  return { publicKey: pair.publicKey, agree: (peer) => agree(pair, peer, importX25519) };
}

export const nodeE2eCrypto: E2eCrypto = {
  sha256,
  createSha256() {
    const hash = createHash('sha256');
    return {
      update: (bytes) => {
        hash.update(bytes);
      },
      digest: () => plainView(hash.digest()),
    };
  },
  // HKDF-Extract is HMAC (RFC 5869 section 2.2).
  hmacSha256: hkdfExtract,
  aesGcmSeal(key, nonce, aad, plaintext) {
    const cipher = createCipheriv('aes-256-gcm', key, nonce, OPTIONS);
    cipher.setAAD(aad);
    const ciphertext = cipher.update(plaintext);
    cipher.final();
    return concatBytes(ciphertext, cipher.getAuthTag());
  },
  aesGcmOpen: openAesGcm,
  verifyP256,
  generateX25519() {
    const pair = generateSealingKeyPair();
    return { publicKey: pair.publicKey, agree: (peer) => agree(pair, peer, importRecipientKey) };
  },
  randomBytes: (length) => plainView(randomBytes(length)),
};

function agree(pair: SealingKeyPair, peer: Uint8Array, importKey: typeof importX25519): Uint8Array | null {
  try {
    return sharedSecret(pair.privateKey, importKey(peer));
  } catch (error) {
    if (error instanceof SealingError) return null;
    throw error;
  }
}
