/**
 * X25519 (RFC 7748) on raw 32-byte keys. Private keys stay inside the library's key objects. Public keys are imported as JWK
 * (RFC 8037): measured, that takes a sixth of the time of DER. They are never exported, see {@link rawPublicKey}.
 */
import { createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { concatBytes, fromHex } from '../bytes.js';
import { plainView } from './digest.js';
import { cachedImport } from './key-cache.js';
import { SealingError } from './sealing-error.js';

export const X25519_BYTES = 32;

/** PKCS #8 of a private key, up to its 32 bytes (RFC 8410 section 7). */
const PKCS8_PREFIX = fromHex('302e020100300506032b656e04220420');

export interface SealingKeyPair {
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
  readonly privateKey: KeyObject;
}

export function generateSealingKeyPair(): SealingKeyPair {
  const { privateKey } = generateKeyPairSync('x25519');
  return { publicKey: rawPublicKey(privateKey), privateKey };
}

/** Key pair of a 32-byte private key. Throws SealingError `bad_key` on another length. */
export function sealingKeyPairFrom(privateKey: Uint8Array): SealingKeyPair {
  if (privateKey.length !== X25519_BYTES) throw new SealingError('bad_key', 'an X25519 private key has 32 bytes');
  const key = createPrivateKey({ key: Buffer.from(concatBytes(PKCS8_PREFIX, privateKey)), format: 'der', type: 'pkcs8' });
  return { publicKey: rawPublicKey(key), privateKey: key };
}

/** Imports a 32-byte public key. Throws SealingError `bad_key` on another length. */
export function importX25519(raw: Uint8Array): KeyObject {
  if (raw.length !== X25519_BYTES) throw new SealingError('bad_key', 'an X25519 public key has 32 bytes');
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: Buffer.from(raw).toString('base64url') }, format: 'jwk' });
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

/** The base point, whose u-coordinate is 9 (RFC 7748 section 4.1). */
const BASE_POINT = importX25519(Uint8Array.of(9, ...new Uint8Array(X25519_BYTES - 1)));

/**
 * The public key of a private one: what it makes of the base point (RFC 7748 section 6.1). Not an export, although that is
 * quicker by half an agreement: Node 20 exports a JWK while it holds the pair's lock, and when memory is collected in that
 * moment, the remains of the pair's generation ask for the same lock on the same thread, which then stands still for ever.
 */
function rawPublicKey(privateKey: KeyObject): Uint8Array {
  return plainView(diffieHellman({ privateKey, publicKey: BASE_POINT }));
}
