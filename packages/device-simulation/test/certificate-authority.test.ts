import { createHash, X509Certificate } from 'node:crypto';
import { CHAIN_REJECTIONS } from '@inference/protocol';
import { describe, expect, test } from 'vitest';
import { CHAIN_MUTATIONS, DEVICE_OIDS, SAMPLE_DEVICE, SimulatedAuthority } from '../src/index.js';

/** Deterministic byte stream from a seed. */
function seeded(seed: string): (bytes: number) => Uint8Array {
  let count = 0;
  return (bytes) => {
    const digest = createHash('shake256', { outputLength: bytes }).update(`${seed}${count++}`).digest();
    return new Uint8Array(digest);
  };
}

const now = Date.UTC(2026, 5, 1);
const random = seeded('authority');
const authority = SimulatedAuthority.create({ now, random });
const freshness = random(32);
const { certificates, leafKey } = authority.issue({ now, random, device: SAMPLE_DEVICE, freshness });
const [leaf, issuer] = certificates.map((der) => new X509Certificate(der)) as [X509Certificate, X509Certificate];
const root = new X509Certificate(authority.rootPem);

describe('the simulated authority', () => {
  test('issues certificates that another X.509 implementation verifies up to the root', () => {
    expect(leaf.verify(issuer.publicKey)).toBe(true);
    expect(issuer.verify(root.publicKey)).toBe(true);
    expect(leaf.checkIssued(issuer) && issuer.checkIssued(root) && root.checkIssued(root)).toBe(true);
    expect([leaf.ca, issuer.ca, root.ca]).toEqual([false, true, true]);
    expect(leaf.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'secp384r1' });
    expect(leaf.subject).toContain(`CN=${createHash('sha256').update(leafKey.point).digest('hex')}`);
    expect(Date.parse(leaf.validTo) - Date.parse(leaf.validFrom)).toBe(91 * 86_400_000);
    expect(leaf.keyUsage).toEqual(['1.2.840.113635.100.4.24']);
    expect(root.subject).toContain('Simulated');
  });

  test('writes device facts with the raw encodings of the real certificates', () => {
    const raw = Buffer.from(leaf.raw);
    const extension = (dotted: string): Buffer => {
      const last = dotted.split('.').slice(-2).map(Number);
      // OID arc 1.2.840.113635.100.8 plus two numbers for the fact, then extnValue.
      const at = raw.indexOf(Buffer.from([0x06, 0x0a, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x08, ...last]));
      expect(raw[at + 12]).toBe(0x04);
      return raw.subarray(at + 14, at + 14 + (raw[at + 13] as number));
    };
    expect(extension(DEVICE_OIDS.serial).toString()).toBe(SAMPLE_DEVICE.serialNumber);
    expect(extension(DEVICE_OIDS.udid).toString()).toBe(SAMPLE_DEVICE.provisioningUdid);
    expect(extension(DEVICE_OIDS.sip).toString('hex')).toBe('020100');
    expect(extension(DEVICE_OIDS.kexts).toString('hex')).toBe('020100');
    expect(extension(DEVICE_OIDS.secureBoot).toString()).toBe('Full Security');
    expect(extension(DEVICE_OIDS.freshness)).toEqual(Buffer.from(freshness));
  });

  test('is the same authority after a restart with the same randomness or saved state', () => {
    expect(SimulatedAuthority.create({ now, random: seeded('authority') }).rootKey.point).toEqual(authority.rootKey.point);
    const loaded = SimulatedAuthority.load(authority.save());
    expect(loaded.rootPem).toBe(authority.rootPem);
    const again = loaded.issue({ now, random, device: SAMPLE_DEVICE, freshness }).certificates[0];
    expect(new X509Certificate(again).verify(issuer.publicKey)).toBe(true);
    expect(() => SimulatedAuthority.load('{}')).toThrow('not a saved simulated authority');
  });
});

test('mutations have names of their own, and there is one for every rejection', () => {
  const names = CHAIN_MUTATIONS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThan(100);
  const codes = new Set(CHAIN_MUTATIONS.map(({ code }) => code));
  expect(CHAIN_REJECTIONS.filter((code) => !codes.has(code))).toEqual([]);
});
