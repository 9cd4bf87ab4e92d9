/**
 * Tests HPKE with the accumulated vectors of Go's crypto/hpke: 1000 messages per suite, generated from SHAKE128 and hashed with it.
 *
 * The vectors contain no ephemeral private key, so the test seals with the recipient's key schedule.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SealingSequence } from '../../packages/protocol/src/crypto/aead-sequence.js';
import { e2eKeyPair, nodeE2eCrypto } from '../../packages/protocol/src/crypto/e2e-crypto.js';
import { decapsulate, keySchedule, setupRecipient } from '../../packages/protocol/src/crypto/hpke.js';
import { sealingKeyPairFrom } from '../../packages/protocol/src/crypto/x25519.js';
import { setupBaseRecipient } from '../../packages/protocol/src/e2e/hpke.js';

interface HpkeVector {
  readonly mode: number;
  readonly kem_id: number;
  readonly kdf_id: number;
  readonly aead_id: number;
  readonly info: string;
  readonly skRm: string;
  readonly pkRm: string;
  readonly enc: string;
  readonly encryptions_accumulated: string;
  readonly exports_accumulated: string;
}

const ROUNDS = 1000;

export function hpkeVectors(directory: string): void {
  const vectors = JSON.parse(readFileSync(join(directory, 'hpke', 'go-rfc9180-x25519.json'), 'utf8')) as readonly HpkeVector[];
  // This project uses DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM; AES-128-GCM (1) and ChaCha20 (3) are excluded.
  const ours = vectors.filter((v) => v.mode === 0 && v.kem_id === 0x20 && v.kdf_id === 1 && v.aead_id === 2);

  describe('RFC 9180, accumulated', () => {
    test('there is a vector for the suite', () => {
      expect(ours.length).toBeGreaterThan(0);
    });

    test.each(ours)('AEAD $aead_id: public key, 1000 messages both ways, 1000 exports', (vector) => {
      const pair = sealingKeyPairFrom(hex(vector.skRm));
      expect(pair.publicKey).toEqual(hex(vector.pkRm));
      const info = hex(vector.info);
      const recipient = setupRecipient(pair, hex(vector.enc), info);
      // End-to-end mode has a separate implementation of the key schedule, which runs in browsers.
      const schedule = keySchedule(decapsulate(pair, hex(vector.enc)), info);
      expect(setupBaseRecipient(nodeE2eCrypto, e2eKeyPair(pair), hex(vector.enc), info)).toEqual(schedule);
      const sealing = new SealingSequence(schedule);

      const inputs = shakeSource();
      const sealedBytes = createHash('shake128', { outputLength: 16 });
      for (let round = 0; round < ROUNDS; round++) {
        const aad = inputs();
        const plaintext = inputs();
        const sealed = sealing.seal(aad, plaintext);
        sealedBytes.update(sealed);
        expect(Buffer.compare(recipient.open(aad, sealed), plaintext)).toBe(0);
      }
      expect(sealedBytes.digest('hex')).toBe(vector.encryptions_accumulated);

      const contexts = shakeSource();
      const exported = createHash('shake128', { outputLength: 16 });
      for (let length = 0; length < ROUNDS; length++) exported.update(recipient.exportSecret(contexts(), length));
      expect(exported.digest('hex')).toBe(vector.exports_accumulated);
    });
  });
}

/** Generates inputs as Go's tests do, from SHAKE128 of the empty string: one length byte, then a value of this length. */
function shakeSource(): () => Uint8Array {
  const stream = new Uint8Array(createHash('shake128', { outputLength: 2 * ROUNDS * 256 }).digest());
  let offset = 0;
  return () => {
    const start = offset + 1;
    offset = start + (stream[offset] as number);
    return stream.subarray(start, offset);
  };
}

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'));
}
