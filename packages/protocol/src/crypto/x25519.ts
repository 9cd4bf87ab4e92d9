/**
 * X25519 (RFC 7748) on raw 32-byte keys. Keys are imported as JWK (RFC 8037): measured, that takes a sixth of the time of DER.
 * Pairs are not made by the library's generator, see {@link generateSealingKeyPair}.
 */
import { createPrivateKey, createPublicKey, diffieHellman, type KeyObject, randomFillSync } from 'node:crypto';
import { plainView } from './digest.js';
import { cachedImport } from './key-cache.js';
import { SealingError } from './sealing-error.js';

export const X25519_BYTES = 32;

export interface SealingKeyPair {
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
  readonly privateKey: KeyObject;
}

/** Stands where the format of private keys wants a public key that nobody reads. */
const UNREAD = base64Url(new Uint8Array(X25519_BYTES));

/** Random bytes that become private keys, each at once and once. */
const seed = new Uint8Array(X25519_BYTES);

/**
 * A fresh pair. A private key is 32 random bytes (RFC 7748 section 5), so importing them makes one. The library's generator is not
 * used: its pair can only be exported under a lock, and when memory is collected in that moment, the remains of the generation
 * ask for the same lock on the same thread, which then stands still for ever (Node 20). It also takes twice the time.
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
  // The library takes `d` alone and works out the public key itself.
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'X25519', d: base64Url(privateKey), x: UNREAD }, format: 'jwk' });
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return { publicKey: plainView(Buffer.from(x as string, 'base64url')), privateKey: key };
}

/** Imports a 32-byte public key. Throws SealingError `bad_key` on another length. */
export function importX25519(raw: Uint8Array): KeyObject {
  if (raw.length !== X25519_BYTES) throw new SealingError('bad_key', 'an X25519 public key has 32 bytes');
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: base64Url(raw) }, format: 'jwk' });
}

/** As {@link importX25519}, remembering keys that come again: a provider's sealing key serves many jobs. */
export const importRecipientKey = cachedImport(256, importX25519);

/**
 * The 32-byte shared secret. Throws SealingError `bad_key` when it is all zero, which happens exactly for public keys of
 * small order (RFC 7748 section 6.1, RFC 9180 section 7.1.4).
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
