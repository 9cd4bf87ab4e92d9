/** Tests cryptography with Project Wycheproof (C2SP, testvectors_v1). Excludes cases only by parameters, such as key or nonce size. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { OpeningSequence, SealingSequence } from '../../packages/protocol/src/crypto/aead-sequence.js';
import { e2eKeyPair, nodeE2eCrypto } from '../../packages/protocol/src/crypto/e2e-crypto.js';
import { hkdfExpand, hkdfExtract } from '../../packages/protocol/src/crypto/hkdf.js';
import { verifyP256 } from '../../packages/protocol/src/crypto/p256.js';
import { SealingError } from '../../packages/protocol/src/crypto/sealing-error.js';
import { importX25519, sealingKeyPairFrom, sharedSecret } from '../../packages/protocol/src/crypto/x25519.js';
import { verifyP256InBrowser } from '../../packages/verifier/src/p256.js';

interface Case {
  readonly tcId: number;
  readonly comment: string;
  readonly flags: readonly string[];
  readonly result: 'valid' | 'invalid' | 'acceptable';
}
interface SignatureGroup {
  readonly publicKey: { readonly uncompressed: string };
  readonly tests: readonly (Case & { readonly msg: string; readonly sig: string })[];
}
interface AeadGroup {
  readonly ivSize: number;
  readonly keySize: number;
  readonly tagSize: number;
  readonly tests: readonly (Case & {
    readonly key: string;
    readonly iv: string;
    readonly aad: string;
    readonly msg: string;
    readonly ct: string;
    readonly tag: string;
  })[];
}
interface ExchangeGroup {
  readonly tests: readonly (Case & { readonly public: string; readonly private: string; readonly shared: string })[];
}
interface MacGroup {
  readonly tagSize: number;
  readonly tests: readonly (Case & { readonly key: string; readonly msg: string; readonly tag: string })[];
}
interface HkdfGroup {
  readonly tests: readonly (Case & {
    readonly ikm: string;
    readonly salt: string;
    readonly info: string;
    readonly size: number;
    readonly okm: string;
  })[];
}

export function wycheproofVectors(directory: string): void {
  function load<Group>(name: string): readonly Group[] {
    const file = JSON.parse(readFileSync(join(directory, 'wycheproof', name), 'utf8')) as { testGroups: readonly Group[] };
    expect(file.testGroups.length).toBeGreaterThan(0);
    return file.testGroups;
  }

  describe('Wycheproof', () => {
    test('ecdsa_secp256r1_sha256: both verifiers give the stated result', () => {
      let run = 0;
      for (const group of load<SignatureGroup>('ecdsa_secp256r1_sha256_test.json')) {
        const key = hex(group.publicKey.uncompressed);
        for (const each of group.tests) {
          const expected = each.result === 'valid';
          expect(verifyP256(key, hex(each.msg), hex(each.sig)), nameOf(each)).toBe(expected);
          expect(verifyP256InBrowser(key, hex(each.msg), hex(each.sig)), nameOf(each)).toBe(expected);
          run++;
        }
      }
      report('ecdsa_secp256r1_sha256', run);
    });

    test('ecdsa_secp256r1_sha256_p1363: refused as it is, and right when put into DER', () => {
      let run = 0;
      for (const group of load<SignatureGroup>('ecdsa_secp256r1_sha256_p1363_test.json')) {
        const key = hex(group.publicKey.uncompressed);
        for (const each of group.tests) {
          const signature = hex(each.sig);
          expect(verifyP256(key, hex(each.msg), signature), nameOf(each)).toBe(false);
          const der = derOf(signature);
          const expected = each.result === 'valid';
          expect(der !== null && verifyP256(key, hex(each.msg), der), nameOf(each)).toBe(expected);
          expect(der !== null && verifyP256InBrowser(key, hex(each.msg), der), nameOf(each)).toBe(expected);
          run++;
        }
      }
      report('ecdsa_secp256r1_sha256_p1363', run);
    });

    test('x25519: the stated secret, and a refusal where it is all zero', () => {
      let run = 0;
      let zero = 0;
      for (const group of load<ExchangeGroup>('x25519_test.json')) {
        for (const each of group.tests) {
          const derive = () => sharedSecret(sealingKeyPairFrom(hex(each.private)).privateKey, importX25519(hex(each.public)));
          if (/^0*$/.test(each.shared)) {
            expect(derive, nameOf(each)).toThrow(SealingError);
            zero++;
          } else expect(toHex(derive()), nameOf(each)).toBe(each.shared);
          const agreed = e2eKeyPair(sealingKeyPairFrom(hex(each.private))).agree(hex(each.public));
          expect(agreed === null ? null : toHex(agreed), nameOf(each)).toBe(/^0*$/.test(each.shared) ? null : each.shared);
          run++;
        }
      }
      expect(zero).toBeGreaterThan(0);
      report('x25519', run);
    });

    test('aes_gcm with 256-bit keys, 96-bit nonces and 128-bit tags', () => {
      let run = 0;
      for (const group of load<AeadGroup>('aes_gcm_test.json')) {
        if (group.keySize !== 256 || group.ivSize !== 96 || group.tagSize !== 128) continue;
        for (const each of group.tests) {
          const secret = { key: hex(each.key), baseNonce: hex(each.iv) };
          const open = () => new OpeningSequence(secret).open(hex(each.aad), hex(each.ct + each.tag));
          if (each.result === 'valid') {
            expect(toHex(open()), nameOf(each)).toBe(each.msg);
            expect(toHex(new SealingSequence(secret).seal(hex(each.aad), hex(each.msg))), nameOf(each)).toBe(each.ct + each.tag);
          } else expect(open, nameOf(each)).toThrow(expect.objectContaining({ code: 'open_failed' }));
          const opened = nodeE2eCrypto.aesGcmOpen(secret.key, secret.baseNonce, hex(each.aad), hex(each.ct + each.tag));
          expect(opened === null ? null : toHex(opened), nameOf(each)).toBe(each.result === 'valid' ? each.msg : null);
          run++;
        }
      }
      report('aes_gcm', run);
    });

    test('hmac_sha256 with whole tags', () => {
      let run = 0;
      for (const group of load<MacGroup>('hmac_sha256_test.json')) {
        if (group.tagSize !== 256) continue;
        for (const each of group.tests) {
          const matches = toHex(nodeE2eCrypto.hmacSha256(hex(each.key), hex(each.msg))) === each.tag;
          expect(matches, nameOf(each)).toBe(each.result === 'valid');
          run++;
        }
      }
      report('hmac_sha256', run);
    });

    test('hkdf_sha256', () => {
      let run = 0;
      for (const group of load<HkdfGroup>('hkdf_sha256_test.json')) {
        for (const each of group.tests) {
          const derive = () => hkdfExpand(hkdfExtract(hex(each.salt), hex(each.ikm)), each.size, hex(each.info));
          if (each.result === 'valid') expect(toHex(derive()), nameOf(each)).toBe(each.okm);
          else expect(derive, nameOf(each)).toThrow(RangeError);
          run++;
        }
      }
      report('hkdf_sha256', run);
    });
  });
}

/** Encodes `r ‖ s` as minimal DER; null unless the input has the 64 bytes of P-256. */
function derOf(signature: Uint8Array): Uint8Array | null {
  if (signature.length !== 64) return null;
  const integers = [signature.subarray(0, 32), signature.subarray(32)].flatMap((scalar) => {
    const from = scalar.findIndex((byte) => byte !== 0);
    const magnitude = from === -1 ? [0] : [...scalar.subarray(from)];
    const content = (magnitude[0] as number) >= 0x80 ? [0, ...magnitude] : magnitude;
    return [0x02, content.length, ...content];
  });
  return Uint8Array.from([0x30, integers.length, ...integers]);
}

function report(suite: string, run: number): void {
  expect(run).toBeGreaterThan(0);
  process.stdout.write(`wycheproof ${suite}: ${run} cases\n`);
}

function nameOf(each: Case): string {
  return `case ${each.tcId} ${each.comment} [${each.flags.join(', ')}]`;
}

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'));
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
