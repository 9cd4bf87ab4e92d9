/** Ed25519 (RFC 8032) with raw keys on `node:crypto`: `LogCrypto` and key pairs for the transparency log. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { LogCrypto } from '../log/crypto.js';
import type { SignEd25519 } from '../log/signed-note.js';
import { plainView, sha256 } from './digest.js';

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** Placeholder: the private JWK format requires a public key, but the import ignores the value. */
const PLACEHOLDER_KEY = Buffer.alloc(KEY_BYTES).toString('base64url');

export const nodeLogCrypto: LogCrypto = {
  sha256,
  verifyEd25519(publicKey, message, signature) {
    if (publicKey.length !== KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
    try {
      return verify(null, message, importPublicKey(publicKey), signature);
    } catch {
      // The import throws if the bytes are not a point on the curve.
      return false;
    }
  },
};

export interface Ed25519KeyPair {
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
  readonly sign: SignEd25519;
}

/** Key pair of a 32-byte private key (RFC 8032 section 5.1.5). Throws RangeError on another length. */
export function ed25519KeyPairFrom(privateKey: Uint8Array): Ed25519KeyPair {
  if (privateKey.length !== KEY_BYTES) throw new RangeError('an Ed25519 private key has 32 bytes');
  const d = Buffer.from(privateKey).toString('base64url');
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x: PLACEHOLDER_KEY }, format: 'jwk' });
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return { publicKey: plainView(Buffer.from(x as string, 'base64url')), sign: (message) => plainView(sign(null, message, key)) };
}

function importPublicKey(publicKey: Uint8Array): KeyObject {
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') }, format: 'jwk' });
}
