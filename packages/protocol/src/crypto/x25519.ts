/** X25519 (RFC 7748) with raw 32-byte keys. Imports keys as JWK (RFC 8037), which takes a sixth of the time of DER. */
import { createPrivateKey, createPublicKey, diffieHellman, type KeyObject, randomFillSync } from 'node:crypto';
import { plainView } from './digest.js';
import { cachedImport } from './key-cache.js';
import { SealingError } from './sealing-error.js';

const X25519_BYTES = 32;

export interface SealingKeyPair {
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
  readonly privateKey: KeyObject;
}

/** Placeholder: the private JWK format requires a public key, but the import ignores the value. */
const PLACEHOLDER_KEY = base64Url(new Uint8Array(X25519_BYTES));

/** Reused buffer for the random bytes of a new private key, cleared after use. */
const seed = new Uint8Array(X25519_BYTES);

/**
 * Generates a key pair from 32 random bytes (RFC 7748 section 5). Takes half the time of Node's generator.
 *
 * In addition, Node 20's generator can deadlock: a key export holds a lock that garbage collection on the same thread requests.
 */
export function generateSealingKeyPair(): SealingKeyPair {
  randomFillSync(seed);
  const pair = sealingKeyPairFrom(seed);
  seed.fill(0);
  return pair;
}

/** Key pair of a 32-byte private key. Throws SealingError `bad_key` on another length. */
export function sealingKeyPairFrom(privateKey: Uint8Array): SealingKeyPair {
  if (privateKey.length !== X25519_BYTES) throw new SealingError('bad_key', 'an X25519 private key has 32 bytes');
  // OpenSSL derives the public key from `d`.
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'X25519', d: base64Url(privateKey), x: PLACEHOLDER_KEY }, format: 'jwk' });
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return { publicKey: plainView(Buffer.from(x as string, 'base64url')), privateKey: key };
}

/** Imports a 32-byte public key. Throws SealingError `bad_key` on another length. */
export function importX25519(raw: Uint8Array): KeyObject {
  if (raw.length !== X25519_BYTES) throw new SealingError('bad_key', 'an X25519 public key has 32 bytes');
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: base64Url(raw) }, format: 'jwk' });
}

/** {@link importX25519} with a cache: one provider sealing key serves many jobs. */
export const importRecipientKey = cachedImport(256, importX25519);

/**
 * Shared secret, 32 bytes.
 *
 * @throws {SealingError} `bad_key` if all zero: the public key has small order (RFC 7748 section 6.1, RFC 9180 section 7.1.4).
 */
export function sharedSecret(privateKey: KeyObject, publicKey: KeyObject): Uint8Array {
  let secret: Uint8Array;
  try {
    secret = plainView(diffieHellman({ privateKey, publicKey }));
  } catch {
    throw new SealingError('bad_key', 'the X25519 public key has small order');
  }
  let bits = 0;
  for (const byte of secret) bits |= byte;
  if (bits === 0) throw new SealingError('bad_key', 'the X25519 public key has small order');
  return secret;
}

function base64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64url');
}
