/** Tests both chain verifiers with six published certificate chains of real devices: facts, and rejection outside the validity. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseCertificate } from '../../apps/coordinator/src/providers/verification/chain/certificate.js';
import { pointOf } from '../../apps/coordinator/src/providers/verification/chain/p384.js';
import { APPLE_TRUST_ANCHOR } from '../../apps/coordinator/src/providers/verification/chain/trust-anchor.js';
import { type ChainExpectations, verifyDeviceChain } from '../../apps/coordinator/src/providers/verification/chain/verify-chain.js';
import { verifyDeviceChain as verifyOutside } from '../../packages/verifier/src/index.js';

interface Expected {
  readonly file: string;
  readonly leaf_sha256: string;
  readonly not_before: string;
  readonly not_after: string;
  readonly serial: string;
  readonly provisioning_udid: string;
  readonly software_update_device_id: string;
  readonly os_version: string;
  readonly sepos_version: string;
  readonly llb_version: string;
  readonly sip_enabled: boolean;
  readonly secure_boot: string;
  readonly third_party_kexts: boolean;
  readonly freshness_hex: string;
  readonly feed_claimed_chip: string | null;
  readonly se_public_key_b64?: string;
}

const DAY_MS = 24 * 60 * 60_000;

export function deviceChainVectors(directory: string): void {
  const folder = join(directory, 'apple-mda');
  const vectors = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as readonly Expected[];

  describe('real managed-device chains', () => {
    test('there are six, and the pinned anchor is the published root', () => {
      expect(vectors).toHaveLength(6);
      const [root] = certificatesOf(join(folder, 'apple-enterprise-attestation-root-ca.pem'));
      const { subject, publicKeyInfo } = parseCertificate(Buffer.from(root as string, 'base64'));
      expect(Buffer.from(subject)).toEqual(Buffer.from(APPLE_TRUST_ANCHOR.name));
      expect(pointOf(publicKeyInfo)).toEqual(APPLE_TRUST_ANCHOR.publicKey);
    });

    test.each(vectors)('$file', (vector) => {
      const chain = certificatesOf(join(folder, vector.file));
      const expected = expectationsOf(vector);
      const notBefore = Date.parse(vector.not_before);
      const verdict = verifyDeviceChain(chain, expected, APPLE_TRUST_ANCHOR, notBefore + DAY_MS);
      if (!verdict.ok) throw new Error(`refused: ${verdict.code}`);
      expect(verdict.facts).toMatchObject({
        serialNumber: vector.serial,
        provisioningUdid: vector.provisioning_udid,
        softwareUpdateDeviceId: vector.software_update_device_id,
        osVersion: vector.os_version,
        sepOsVersion: vector.sepos_version,
        llbVersion: vector.llb_version,
        sipEnabled: vector.sip_enabled,
        secureBoot: vector.secure_boot,
        thirdPartyKextsAllowed: vector.third_party_kexts,
        leafSha256: vector.leaf_sha256,
        notBefore,
        notAfter: Date.parse(vector.not_after),
      });
      expect(Buffer.from(verdict.facts.freshness).toString('hex')).toBe(vector.freshness_hex);

      const outside = verifyOutside(chain, { serial: vector.serial, freshness: [verdict.facts.freshness] }, notBefore + DAY_MS);
      if (!outside.ok) throw new Error(`refused outside: ${outside.code}`);
      expect(outside.facts).toMatchObject({
        udid: vector.provisioning_udid,
        board: vector.software_update_device_id,
        sepos_version: vector.sepos_version,
        sipEnabled: vector.sip_enabled,
        secureBoot: vector.secure_boot,
        thirdPartyKexts: vector.third_party_kexts,
      });
      expect(verifyOutside(chain, {}, Date.now())).toMatchObject({ ok: false, code: 'leaf_expired' });
      expect(verifyOutside(chain, { serial: 'ANOTHER001' }, notBefore + DAY_MS)).toMatchObject({ ok: false, code: 'serial_mismatch' });

      const codeAt = (now: number, change: Partial<ChainExpectations> = {}): string | null => {
        const result = verifyDeviceChain(chain, { ...expected, ...change }, APPLE_TRUST_ANCHOR, now);
        return result.ok ? null : result.code;
      };
      expect(codeAt(Date.now())).toMatch(/^(leaf_expired|too_old)$/);
      expect(codeAt(notBefore - 1)).toBe('leaf_not_yet_valid');
      expect(codeAt(notBefore + 31 * DAY_MS)).toBe('too_old');
      expect(codeAt(notBefore + DAY_MS, { freshness: new Uint8Array(32) })).toBe('freshness_mismatch');
      expect(codeAt(notBefore + DAY_MS, { claims: { ...expected.claims, serialNumber: 'ANOTHER001' } })).toBe('serial_mismatch');
      expect(codeAt(notBefore + DAY_MS, { claims: { ...expected.claims, chipName: 'Apple M1' } })).toBe('chip_mismatch');
    });

    test('one is bound to its enclave key in the legacy form, which this coordinator does not use', () => {
      const bound = vectors.filter(({ se_public_key_b64 }) => se_public_key_b64 !== undefined);
      expect(bound).toHaveLength(1);
      for (const { se_public_key_b64 = '', freshness_hex } of bound) {
        expect(createHash('sha256').update(se_public_key_b64, 'ascii').digest('hex')).toBe(freshness_hex);
      }
    });
  });
}

function expectationsOf(vector: Expected): ChainExpectations {
  return {
    claims: {
      serialNumber: vector.serial,
      provisioningUdid: vector.provisioning_udid,
      softwareUpdateDeviceId: vector.software_update_device_id,
      chipName: vector.feed_claimed_chip,
    },
    freshness: new Uint8Array(Buffer.from(vector.freshness_hex, 'hex')),
  };
}

/** base64 of the DER of each certificate in a PEM file. */
function certificatesOf(path: string): string[] {
  const blocks = readFileSync(path, 'utf8').matchAll(/-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/g);
  return [...blocks].map(([, base64 = '']) => base64.replace(/\s/g, ''));
}
