import { x25519 } from '@noble/curves/ed25519.js';
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke';
import { describe, expect, test } from 'vitest';
import { OpeningSequence, SealingSequence } from '../src/crypto/aead-sequence.js';
import { encapsulate, setupRecipient, setupSender } from '../src/crypto/hpke.js';
import type { SealingError, SealingErrorCode } from '../src/crypto/sealing-error.js';
import { generateSealingKeyPair, importX25519, sealingKeyPairFrom, sharedSecret } from '../src/crypto/x25519.js';
import { SeededRandom, withFlippedBit } from './seeded-random.js';

const suite = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);

/** Public keys of small order (RFC 7748 section 7), including non-canonical encodings. */
const SMALL_ORDER = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
].map((hex) => Uint8Array.from(Buffer.from(hex, 'hex')));

function refuses(code: SealingErrorCode, act: () => unknown): void {
  expect(act).toThrow(expect.objectContaining({ name: 'SealingError', code }) as SealingError);
}

describe('X25519', () => {
  test('agrees with an independent implementation', () => {
    const random = new SeededRandom(5);
    for (let i = 0; i < 40; i++) {
      const secret = random.bytes(32);
      const pair = sealingKeyPairFrom(secret);
      expect(pair.publicKey).toEqual(x25519.getPublicKey(secret));
      const peer = x25519.keygen(random.bytes(32));
      expect(sharedSecret(pair.privateKey, importX25519(peer.publicKey))).toEqual(x25519.getSharedSecret(peer.secretKey, pair.publicKey));
    }
  });

  test('public keys of small order and of the wrong size are refused', () => {
    const pair = generateSealingKeyPair();
    for (const key of SMALL_ORDER) {
      refuses('bad_key', () => sharedSecret(pair.privateKey, importX25519(key)));
      refuses('bad_key', () => encapsulate(key));
      refuses('bad_key', () => setupRecipient(pair, key, new Uint8Array(0)));
    }
    for (const length of [0, 31, 33, 64]) {
      refuses('bad_key', () => encapsulate(new Uint8Array(length)));
      refuses('bad_key', () => setupRecipient(pair, new Uint8Array(length), new Uint8Array(0)));
      refuses('bad_key', () => sealingKeyPairFrom(new Uint8Array(length)));
    }
  });

  test('generated pairs differ and fit together', () => {
    const a = generateSealingKeyPair();
    const b = generateSealingKeyPair();
    expect(a.publicKey).not.toEqual(b.publicKey);
    expect(a.publicKey).toHaveLength(32);
    expect(sharedSecret(a.privateKey, importX25519(b.publicKey))).toEqual(sharedSecret(b.privateKey, importX25519(a.publicKey)));
  });
});

describe('HPKE', () => {
  test('an independent implementation opens its ciphertexts; exports agree', async () => {
    const random = new SeededRandom(6);
    for (let i = 0; i < 10; i++) {
      const secret = random.bytes(32);
      const info = random.bytes(random.below(100));
      const sender = setupSender(encapsulate(sealingKeyPairFrom(secret).publicKey), info);
      const recipient = await suite.SetupRecipient(await suite.DeserializePrivateKey(secret, true), sender.enc, { info });
      for (let message = 0; message < 5; message++) {
        const aad = random.bytes(random.below(40));
        const plaintext = random.bytes(random.below(500));
        expect(Uint8Array.from(await recipient.Open(sender.seal(aad, plaintext), aad))).toEqual(plaintext);
      }
      const context = random.bytes(random.below(50));
      const length = 1 + random.below(200);
      expect(sender.exportSecret(context, length)).toEqual(Uint8Array.from(await recipient.Export(context, length)));
    }
  });

  test('it opens ciphertexts of an independent implementation; exports agree', async () => {
    const random = new SeededRandom(7);
    for (let i = 0; i < 10; i++) {
      const pair = sealingKeyPairFrom(random.bytes(32));
      const info = random.bytes(random.below(100));
      const { encapsulatedSecret, ctx } = await suite.SetupSender(await suite.DeserializePublicKey(pair.publicKey), { info });
      const recipient = setupRecipient(pair, encapsulatedSecret, info);
      for (let message = 0; message < 5; message++) {
        const aad = random.bytes(random.below(40));
        const plaintext = random.bytes(random.below(500));
        expect(recipient.open(aad, await ctx.Seal(plaintext, aad))).toEqual(plaintext);
      }
      const context = random.bytes(random.below(50));
      expect(recipient.exportSecret(context, 32)).toEqual(Uint8Array.from(await ctx.Export(context, 32)));
    }
  });

  test('a fixed ephemeral key gives fixed bytes, a fresh one new bytes each time', () => {
    const recipient = sealingKeyPairFrom(new Uint8Array(32).fill(1));
    const ephemeral = sealingKeyPairFrom(new Uint8Array(32).fill(2));
    const sealed = () =>
      setupSender(encapsulate(recipient.publicKey, ephemeral), Uint8Array.of(3)).seal(Uint8Array.of(4), Uint8Array.of(5));
    expect(sealed()).toEqual(sealed());
    expect(setupSender(encapsulate(recipient.publicKey), Uint8Array.of(3)).enc).not.toEqual(
      setupSender(encapsulate(recipient.publicKey), Uint8Array.of(3)).enc,
    );
  });

  test('altered ciphertext, tag, associated data, info, enc or key: nothing opens, and the right message still does', () => {
    const random = new SeededRandom(8);
    const pair = generateSealingKeyPair();
    const info = random.bytes(48);
    const sender = setupSender(encapsulate(pair.publicKey), info);
    const aad = random.bytes(5);
    const plaintext = random.bytes(40);
    const sealed = sender.seal(aad, plaintext);
    const recipient = setupRecipient(pair, sender.enc, info);
    for (let byte = 0; byte < sealed.length; byte++)
      refuses('open_failed', () => recipient.open(aad, withFlippedBit(sealed, byte, random.below(8))));
    for (let byte = 0; byte < aad.length; byte++) refuses('open_failed', () => recipient.open(withFlippedBit(aad, byte), sealed));
    for (let length = 0; length < sealed.length; length++) refuses('open_failed', () => recipient.open(aad, sealed.subarray(0, length)));
    for (let byte = 0; byte < info.length; byte += 7) {
      refuses('open_failed', () => setupRecipient(pair, sender.enc, withFlippedBit(info, byte)).open(aad, sealed));
    }
    refuses('open_failed', () => setupRecipient(generateSealingKeyPair(), sender.enc, info).open(aad, sealed));
    refuses('open_failed', () => setupRecipient(pair, withFlippedBit(sender.enc, 3), info).open(aad, sealed));
    // X25519 ignores the top bit of a key, but HPKE authenticates the bytes of `enc`.
    refuses('open_failed', () => setupRecipient(pair, withFlippedBit(sender.enc, 31, 7), info).open(aad, sealed));
    expect(recipient.open(aad, sealed)).toEqual(plaintext);
    refuses('open_failed', () => recipient.open(aad, sealed));
  });

  test('exports of any permitted length work; longer exports are refused', () => {
    const sender = setupSender(encapsulate(generateSealingKeyPair().publicKey), new Uint8Array(0));
    const context = Uint8Array.of(1);
    for (const length of [0, 1, 31, 32, 33, 255 * 32]) expect(sender.exportSecret(context, length)).toHaveLength(length);
    for (const length of [-1, 1.5, 255 * 32 + 1, Number.NaN]) expect(() => sender.exportSecret(context, length)).toThrow(RangeError);
  });
});

describe('nonce sequence', () => {
  const secret = { key: new Uint8Array(32).fill(7), baseNonce: new Uint8Array(12).fill(0xff) };

  test('the last number is refused, for sealing and for opening', () => {
    const sealing = new SealingSequence(secret, 0xffff_fffe);
    const opening = new OpeningSequence(secret, 0xffff_fffe);
    const sealed = sealing.seal(new Uint8Array(0), Uint8Array.of(1));
    expect(opening.open(new Uint8Array(0), sealed)).toEqual(Uint8Array.of(1));
    refuses('exhausted', () => sealing.seal(new Uint8Array(0), Uint8Array.of(1)));
    refuses('exhausted', () => opening.open(new Uint8Array(0), sealed));
  });

  test('keys and nonces of another size are refused', () => {
    for (const length of [0, 16, 31, 33]) expect(() => new SealingSequence({ ...secret, key: new Uint8Array(length) })).toThrow(RangeError);
    for (const length of [0, 11, 13])
      expect(() => new OpeningSequence({ ...secret, baseNonce: new Uint8Array(length) })).toThrow(RangeError);
  });
});
