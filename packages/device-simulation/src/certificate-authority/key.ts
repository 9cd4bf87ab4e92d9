/** Derives P-384 keys from supplied randomness, so that the same seed yields the same authority. */
import { createECDH, createPrivateKey, type KeyObject } from 'node:crypto';
import { toBase64Url } from '@inference/protocol';
import { bitString, objectIdentifier, sequence } from './der.js';

/** Returns `bytes` random bytes. */
export type Random = (bytes: number) => Uint8Array;

export interface P384Key {
  readonly privateKey: KeyObject;
  /** Private key as a big-endian number of 48 bytes. */
  readonly scalar: Uint8Array;
  /** 97-byte uncompressed point. */
  readonly point: Uint8Array;
}

export function p384Key(random: Random): P384Key {
  // The cleared top bit makes the scalar less than the order of the curve.
  return p384KeyFrom(random(48).map((byte, index) => (index === 0 ? byte & 0x7f : byte)));
}

export function p384KeyFrom(scalar: Uint8Array): P384Key {
  const exchange = createECDH('secp384r1');
  exchange.setPrivateKey(scalar);
  const point = new Uint8Array(exchange.getPublicKey());
  const [x, y] = [point.subarray(1, 49), point.subarray(49)];
  const jwk = { kty: 'EC', crv: 'P-384', x: toBase64Url(x), y: toBase64Url(y), d: toBase64Url(scalar) };
  return { privateKey: createPrivateKey({ key: jwk, format: 'jwk' }), scalar, point };
}

/** SubjectPublicKeyInfo of a P-384 point (RFC 5480 section 2). */
export function p384KeyInfo(point: Uint8Array): Uint8Array {
  return sequence(sequence(objectIdentifier('1.2.840.10045.2.1'), objectIdentifier('1.3.132.0.34')), bitString(point));
}
