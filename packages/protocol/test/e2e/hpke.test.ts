/** HPKE and the answer's key derivation against published vectors and an independent implementation. */

import { createCipheriv, createDecipheriv } from 'node:crypto';
import { computeNonce, deriveResponseKeys } from 'ehbp';
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke';
import { describe, expect, test } from 'vitest';
import { concatBytes, fromHex, toHex } from '../../src/bytes.js';
import { e2eKeyPair, nodeE2eCrypto } from '../../src/crypto/e2e-crypto.js';
import { sealingKeyPairFrom } from '../../src/crypto/x25519.js';
import { deriveAnswerSecret } from '../../src/e2e/answer.js';
import { E2eFrameSealer } from '../../src/e2e/frames.js';
import { exportSecret, hkdfExpandBlock, kemSecret, openOnly, sealOnly, setupBaseRecipient, setupBaseSender } from '../../src/e2e/hpke.js';
import { E2E_FRAME_HEADER_BYTES } from '../../src/e2e/limits.js';
import { SeededRandom } from '../seeded-random.js';
import { refuses } from './samples.js';

const suite = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);

test('RFC 9180 appendix A.1.1: the shared secret of both sides', () => {
  const ephemeral = e2eKeyPair(sealingKeyPairFrom(fromHex('52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736')));
  const recipient = e2eKeyPair(sealingKeyPairFrom(fromHex('4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8')));
  expect(toHex(ephemeral.publicKey)).toBe('37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431');
  expect(toHex(recipient.publicKey)).toBe('3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d');
  const secrets = [
    kemSecret(nodeE2eCrypto, ephemeral, recipient.publicKey, ephemeral.publicKey, recipient.publicKey),
    kemSecret(nodeE2eCrypto, recipient, ephemeral.publicKey, ephemeral.publicKey, recipient.publicKey),
  ];
  for (const secret of secrets) expect(toHex(secret)).toBe('fe0e18c9f024ce43799ae393c7e8fe8fce9d218875e8227b0187c04e7d2ea1fc');
});

test('RFC 9458 appendix A: key, nonce and sealed bytes of a response', () => {
  const nonce = fromHex('c789e7151fcba46158ca84b04464910d');
  const derived = deriveAnswerSecret(
    nodeE2eCrypto,
    fromHex('62d87a6ba569ee81014c2641f52bea36'),
    fromHex('4b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472'),
    nonce,
    16,
  );
  expect(toHex(derived.key)).toBe('5d0172a080e428b16d298c4ea0db620d');
  expect(toHex(derived.baseNonce)).toBe('f6bf1aeb88d6df87007fa263');
  const cipher = createCipheriv('aes-128-gcm', derived.key, derived.baseNonce);
  const sealed = concatBytes(nonce, cipher.update(fromHex('0140c8')), cipher.final(), cipher.getAuthTag());
  expect(toHex(sealed)).toBe('c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd');
});

describe('an independent implementation', () => {
  test('opens the ciphertexts of this implementation, and exports the same secrets', async () => {
    const random = new SeededRandom(60);
    for (let round = 0; round < 20; round++) {
      const secret = random.bytes(32);
      const info = random.bytes(random.below(80));
      const { publicKey } = sealingKeyPairFrom(secret);
      const sender = setupBaseSender(nodeE2eCrypto, publicKey, info);
      const recipient = await suite.SetupRecipient(await suite.DeserializePrivateKey(secret, true), sender.enc, { info });
      const [aad, plaintext, label] = [random.bytes(random.below(40)), random.bytes(random.below(400)), random.bytes(random.below(40))];
      const sealed = sealOnly(nodeE2eCrypto, sender, aad, plaintext);
      expect(Uint8Array.from(await recipient.Open(sealed, aad))).toEqual(plaintext);
      const length = 1 + random.below(32);
      expect(exportSecret(nodeE2eCrypto, sender, label, length)).toEqual(Uint8Array.from(await recipient.Export(label, length)));
    }
  });

  test('seals ciphertexts that this implementation opens, and exports the same secrets', async () => {
    const random = new SeededRandom(61);
    for (let round = 0; round < 20; round++) {
      const pair = sealingKeyPairFrom(random.bytes(32));
      const info = random.bytes(random.below(80));
      const { encapsulatedSecret, ctx } = await suite.SetupSender(await suite.DeserializePublicKey(pair.publicKey), { info });
      const recipient = setupBaseRecipient(nodeE2eCrypto, e2eKeyPair(pair), encapsulatedSecret, info);
      const [aad, plaintext, label] = [random.bytes(random.below(40)), random.bytes(random.below(400)), random.bytes(random.below(40))];
      const sealed = await ctx.Seal(plaintext, aad);
      expect(openOnly(nodeE2eCrypto, recipient, aad, sealed)).toEqual(plaintext);
      expect(openOnly(nodeE2eCrypto, recipient, aad, sealed.slice(1))).toBeNull();
      expect(openOnly(nodeE2eCrypto, recipient, aad, sealed.slice(0, 15))).toBeNull();
      expect(exportSecret(nodeE2eCrypto, recipient, label, 32)).toEqual(Uint8Array.from(await ctx.Export(label, 32)));
    }
  });
});

test('EHBP derives the same keys of an answer, and opens its frames', async () => {
  const random = new SeededRandom(62);
  for (let round = 0; round < 20; round++) {
    const [secret, enc, responseNonce] = [random.bytes(32), random.bytes(32), random.bytes(32)];
    const derived = deriveAnswerSecret(nodeE2eCrypto, secret, enc, responseNonce, 32);
    const { keyBytes, nonceBase } = await deriveResponseKeys(secret, enc, responseNonce);
    expect([toHex(derived.key), toHex(derived.baseNonce)]).toEqual([toHex(keyBytes), toHex(nonceBase)]);
    const sealer = new E2eFrameSealer(nodeE2eCrypto, derived);
    for (let sequence = 0; sequence < 3; sequence++) {
      const plaintext = random.bytes(1 + random.below(300));
      const sealed = sealer.seal(plaintext, false).subarray(E2E_FRAME_HEADER_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', keyBytes, computeNonce(nonceBase, sequence));
      decipher.setAAD(Uint8Array.of(0, 0, 0, sequence, 0)).setAuthTag(sealed.subarray(-16));
      expect(toHex(concatBytes(decipher.update(sealed.subarray(0, -16)), decipher.final()))).toBe(toHex(plaintext));
    }
  }
});

test('keys of another length, keys of small order and long expansions are refused', () => {
  const pair = e2eKeyPair(sealingKeyPairFrom(new Uint8Array(32).fill(3)));
  const info = new Uint8Array(0);
  for (const key of [new Uint8Array(32), new Uint8Array(31), new Uint8Array(33), Uint8Array.of(1, ...new Uint8Array(31))]) {
    refuses('bad_key', () => setupBaseSender(nodeE2eCrypto, key, info));
    refuses('bad_key', () => setupBaseRecipient(nodeE2eCrypto, pair, key, info));
  }
  expect(() => hkdfExpandBlock(nodeE2eCrypto, info, 33, info)).toThrow(RangeError);
});
