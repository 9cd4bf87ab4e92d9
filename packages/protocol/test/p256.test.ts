import { createPublicKey } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { describe, expect, test } from 'vitest';
import { toHex, utf8 } from '../src/bytes.js';
import { keyIdOf, providerIdOf, sha256, sha256Hex } from '../src/crypto/digest.js';
import { cachedImport } from '../src/crypto/key-cache.js';
import { p256PublicKeyPem, verifyP256 } from '../src/crypto/p256.js';
import { responseHash, verifyResponseSignature } from '../src/crypto/response-signature.js';
import { signatureFromDer } from '../src/ecdsa-der.js';
import { generateEnclaveKey, signDer } from './samples.js';
import { SeededRandom, withFlippedBit } from './seeded-random.js';

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** Minimal DER INTEGER content of a non-negative number. */
function integer(value: bigint): number[] {
  let hex = value.toString(16);
  if (hex.length % 2 === 1) hex = `0${hex}`;
  const bytes = [...Buffer.from(hex, 'hex')];
  return (bytes[0] as number) >= 0x80 ? [0, ...bytes] : bytes;
}

function der(r: readonly number[], s: readonly number[]): Uint8Array {
  const body = [0x02, r.length, ...r, 0x02, s.length, ...s];
  return Uint8Array.from([0x30, body.length, ...body]);
}

function scalars(signature: Uint8Array): [bigint, bigint] {
  const compact = signatureFromDer(signature);
  if (compact === null) throw new Error('not a signature');
  return [BigInt(`0x${toHex(compact.subarray(0, 32))}`), BigInt(`0x${toHex(compact.subarray(32))}`)];
}

describe('agreement with an independent implementation', () => {
  test('signatures of either verify by the other, high S included', () => {
    const random = new SeededRandom(9);
    let high = 0;
    for (let i = 0; i < 60; i++) {
      const message = random.bytes(random.below(200));
      const key = generateEnclaveKey();
      const ours = signDer(key, message);
      const options = { prehash: true, lowS: false, format: 'der' } as const;
      expect(verifyP256(key.x963, message, ours)).toBe(true);
      expect(p256.verify(ours, message, key.x963, options)).toBe(true);
      if (scalars(ours)[1] > ORDER / 2n) high++;

      const theirs = p256.keygen(random.bytes(48));
      const signature = p256.sign(message, theirs.secretKey, options);
      const point = p256.getPublicKey(theirs.secretKey, false);
      expect(verifyP256(point, message, signature)).toBe(true);
      const [r, s] = scalars(signature);
      expect(verifyP256(point, message, der(integer(r), integer(ORDER - s)))).toBe(true);
    }
    expect(high).toBeGreaterThan(0);
  });

  test('the compact form of a signature is the same', () => {
    for (let i = 0; i < 60; i++) {
      const signature = signDer(generateEnclaveKey(), Uint8Array.of(i));
      expect(signatureFromDer(signature)).toEqual(p256.Signature.fromBytes(signature, 'der').toBytes('compact'));
    }
  });
});

describe('refused', () => {
  const key = generateEnclaveKey();
  const message = utf8('message');
  const signature = signDer(key, message);
  const [r, s] = scalars(signature);

  test('every changed bit of signature and message, and every cut', () => {
    for (let byte = 0; byte < signature.length; byte++) {
      for (let bit = 0; bit < 8; bit++) expect(verifyP256(key.x963, message, withFlippedBit(signature, byte, bit))).toBe(false);
    }
    for (let byte = 0; byte < message.length; byte++) expect(verifyP256(key.x963, withFlippedBit(message, byte), signature)).toBe(false);
    for (let length = 0; length < signature.length; length++)
      expect(verifyP256(key.x963, message, signature.subarray(0, length))).toBe(false);
    expect(verifyP256(generateEnclaveKey().x963, message, signature)).toBe(false);
  });

  test.each<[string, Uint8Array]>([
    ['a long form length', Uint8Array.from([0x30, 0x81, signature.length - 2, ...signature.subarray(2)])],
    ['an indefinite length', Uint8Array.from([0x30, 0x80, ...signature.subarray(2), 0, 0])],
    ['a leading zero too many', der([0, ...integer(r)], integer(s))],
    ['a leading zero too many in s', der(integer(r), [0, ...integer(s)])],
    ['a negative number', der([0x80 | 1, ...integer(r).slice(-31)], integer(s))],
    ['an empty number', der([], integer(s))],
    ['a byte after the end', Uint8Array.from([...signature, 0])],
    ['a byte after s inside the sequence', Uint8Array.from([0x30, signature.length - 1, ...signature.subarray(2), 0])],
    ['a third number', Uint8Array.from([0x30, signature.length + 1, ...signature.subarray(2), 2, 1, 1])],
    ['one number only', Uint8Array.from([0x30, integer(r).length + 2, 0x02, integer(r).length, ...integer(r)])],
    ['r = 0', der([0], integer(s))],
    ['s = 0', der(integer(r), [0])],
    ['r = order', der(integer(ORDER), integer(s))],
    ['s = order', der(integer(r), integer(ORDER))],
    ['r + order', der(integer(r + ORDER), integer(s))],
    ['s + order', der(integer(r), integer(s + ORDER))],
    ['33 bytes', der(integer(1n << 256n), integer(s))],
    ['a set instead of a sequence', Uint8Array.from([0x31, ...signature.subarray(1)])],
    ['the compact form', signatureFromDer(signature) as Uint8Array],
    ['nothing', new Uint8Array(0)],
  ])('a signature with %s', (_, encoding) => {
    expect(signatureFromDer(encoding)).toBeNull();
    expect(verifyP256(key.x963, message, encoding)).toBe(false);
  });

  test('the smallest and largest scalars are read', () => {
    expect(signatureFromDer(der([1], [1]))).not.toBeNull();
    expect(signatureFromDer(der(integer(ORDER - 1n), integer(ORDER - 1n)))).not.toBeNull();
  });

  test('keys that are no uncompressed point of the curve', () => {
    const compressed = p256.Point.fromBytes(key.x963).toBytes(true);
    const hybrid = Uint8Array.from([6 | ((key.x963[64] as number) & 1), ...key.x963.subarray(1)]);
    const zero = new Uint8Array(65);
    const origin = new Uint8Array(65);
    origin[0] = 4;
    const outside = Uint8Array.from([4, ...Array.from({ length: 64 }, () => 0xff)]);
    const bad = [
      compressed,
      hybrid,
      zero,
      origin,
      outside,
      withFlippedBit(key.x963, 64),
      key.x963.subarray(1),
      Uint8Array.of(0),
      new Uint8Array(0),
    ];
    for (const point of bad) expect(verifyP256(point, message, signature)).toBe(false);
    expect(verifyP256(key.x963, message, signature)).toBe(true);
  });
});

test('the library reads the PEM of a key back, and other shapes are refused', () => {
  const key = generateEnclaveKey();
  const pem = p256PublicKeyPem(key.x963);
  expect(createPublicKey(pem).export({ format: 'pem', type: 'spki' })).toBe(pem);
  expect(() => p256PublicKeyPem(key.x963.subarray(1))).toThrow(RangeError);
});

test('the key cache imports once, keeps used keys and stays bounded', () => {
  const imported: number[] = [];
  const lookup = cachedImport(2, (raw) => {
    if (raw[0] === 0) throw new RangeError('bad');
    imported.push(raw[0] as number);
    return createPublicKey(p256PublicKeyPem(generateEnclaveKey().x963));
  });
  const key = (byte: number) => lookup(Uint8Array.of(byte));
  expect(key(1)).toBe(key(1));
  key(2);
  key(1);
  key(3);
  key(1);
  key(2);
  expect(imported).toEqual([1, 2, 3, 2]);
  expect(() => key(0)).toThrow(RangeError);
  expect(() => key(0)).toThrow(RangeError);
});

describe('response signature', () => {
  const key = generateEnclaveKey();

  test('covers the 64 digits of the hash, for all divisions into pieces', () => {
    const hash = responseHash();
    for (const piece of ['data: {}', '\n\n', 'é']) hash.update(utf8(piece));
    const digits = hash.digestHex();
    expect(digits).toBe(sha256Hex(utf8('data: {}\n\né')));
    const signature = signDer(key, utf8(digits));
    expect(verifyResponseSignature(key.x963, digits, signature)).toBe(true);
    expect(verifyResponseSignature(key.x963, `0${digits.slice(1)}`, signature)).toBe(digits.startsWith('0'));
  });

  test('never covers anything but 64 lowercase digits', () => {
    const digits = sha256Hex(utf8('x'));
    for (const text of [digits.toUpperCase(), `${digits}\n`, digits.slice(1), `${digits}0`, '', 'inference/receipt/v1\0{}']) {
      expect(verifyResponseSignature(key.x963, text, signDer(key, utf8(text)))).toBe(false);
    }
  });
});

test('digests and ids derive as documented, and are no Buffers', () => {
  const digest = sha256(utf8('abc'));
  expect(toHex(digest)).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(Buffer.isBuffer(digest)).toBe(false);
  expect(providerIdOf(utf8('abc'))).toBe('ba7816bf8f01cfea414140de5dae2223');
  expect(keyIdOf(utf8('abc'))).toBe('ba7816bf8f01cfea');
});
