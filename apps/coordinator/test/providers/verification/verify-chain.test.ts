import { randomBytes } from 'node:crypto';
import { CHAIN_MUTATIONS, type ChainSample, MutationBench, SAMPLE_DEVICE, SimulatedAuthority } from '@inference/device-simulation';
import { toBase64, toHex } from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { describe, expect, test } from 'vitest';
import { parseCertificate } from '../../../src/providers/verification/chain/certificate.js';
import { DerError, membersOf, readDer } from '../../../src/providers/verification/chain/der.js';
import { readDeviceFacts } from '../../../src/providers/verification/chain/device-facts.js';
import { acmeFreshness, deviceNonce, noncePreimage, weeklyEpoch } from '../../../src/providers/verification/chain/freshness.js';
import { APPLE_TRUST_ANCHOR, parseSimulatedAnchor } from '../../../src/providers/verification/chain/trust-anchor.js';
import { type ChainVerdict, verifyDeviceChain } from '../../../src/providers/verification/chain/verify-chain.js';

const bench = new MutationBench();
const anchor = parseSimulatedAnchor(bench.authority.rootPem);

function verify({ chain, claims, freshness, now }: ChainSample): ChainVerdict {
  return verifyDeviceChain(chain, { claims, freshness }, anchor, now);
}

describe('a managed-device chain', () => {
  test('that is genuine returns its facts', () => {
    const sample = bench.sample();
    const verdict = verify(sample);
    if (!verdict.ok) throw new Error(verdict.code);
    expect(verdict.facts).toMatchObject({ ...SAMPLE_DEVICE, chipName: 'Apple M4 Max', notBefore: bench.now });
    expect(toHex(verdict.facts.freshness)).toBe(toHex(bench.freshness));
    expect(verdict.facts.leafPublicKey).toEqual(bench.leafKey.point);
    expect(verdict.facts.goodUntil).toBe(bench.now + 30 * 86_400_000);
    expect(verdict.facts.leafSha256).toBe(toHex(sha256(Buffer.from(sample.chain[0] as string, 'base64'))));
  });

  test.each(CHAIN_MUTATIONS)('with $name: $code', (mutation) => {
    const verdict = verify(mutation.make(bench));
    expect(verdict.ok ? null : verdict.code).toBe(mutation.code);
  });

  test('of a simulated authority is refused under the pinned anchor', () => {
    const { chain, claims, freshness, now } = bench.sample();
    expect(verifyDeviceChain(chain, { claims, freshness }, APPLE_TRUST_ANCHOR, now)).toEqual({ ok: false, code: 'anchor_name' });
  });

  test('with any changed byte is refused', () => {
    const sample = bench.sample();
    const [leaf, issuer] = sample.chain.map((text) => Buffer.from(text, 'base64')) as [Buffer, Buffer];
    for (const [which, der] of [leaf, issuer].entries()) {
      for (let index = 0; index < der.length; index += 7) {
        const changed = Buffer.from(der);
        changed[index] = (changed[index] as number) ^ (1 << (index % 8));
        const chain = which === 0 ? [changed, issuer] : [leaf, changed];
        expect(verify({ ...sample, chain: chain.map(toBase64) }).ok, `byte ${index} of certificate ${which}`).toBe(false);
      }
    }
  });

  test('of random bytes is refused without an exception', () => {
    const sample = bench.sample();
    const issuer = sample.chain[1] as string;
    for (let round = 0; round < 500; round++) {
      const bytes = randomBytes(round % 300);
      if (round % 2 === 0 && bytes.length > 2) bytes.writeUInt16BE(0x3000 + bytes.length - 2);
      expect(verify({ ...sample, chain: [toBase64(bytes), issuer] }).ok).toBe(false);
    }
  });
});

test('10,000 random freshness codes are read unchanged', () => {
  const leaf = parseCertificate(bench.certificates()[0] as Uint8Array);
  const refuse = (code: string): never => {
    throw new Error(code);
  };
  const at = leaf.extensions.findIndex(({ oid }) => oid.endsWith('.11.1'));
  const extensions = [...leaf.extensions];
  let misread = 0;
  for (let round = 0; round < 10_000; round++) {
    const value = new Uint8Array(randomBytes(32));
    // Some values begin like an OCTET STRING, an INTEGER or a SEQUENCE of matching length.
    if (round % 4 === 1) value.set([0x04, 0x1e]);
    if (round % 4 === 2) value.set([[0x02, 0x30, 0x0c][round % 3] as number, 0x1e]);
    extensions[at] = { oid: leaf.extensions[at]?.oid ?? '', critical: false, value };
    const { freshness } = readDeviceFacts({ ...leaf, extensions }, refuse);
    if (Buffer.compare(freshness, value) !== 0) misread++;
  }
  expect(misread).toBe(0);
});

describe('the anchor', () => {
  test('pinned in code has the published name and key', () => {
    expect(toHex(APPLE_TRUST_ANCHOR.publicKey).slice(0, 34)).toBe('04fa26282af8fb3d4380a84fcb7cabe527');
    const [country] = membersOf(readDer(APPLE_TRUST_ANCHOR.name)).slice(-1);
    expect(String.fromCharCode(...(country?.content.slice(-2) ?? []))).toBe('US');
    expect(APPLE_TRUST_ANCHOR.isSimulated).toBe(false);
  });

  test('of a simulation must be named simulated', () => {
    expect(anchor).toMatchObject({ commonName: 'Simulated Enterprise Attestation Root CA', isSimulated: true });
    const names = { root: 'Apple Enterprise Attestation Root CA' };
    const pretender = SimulatedAuthority.create({ now: bench.now, random: randomBytes, names });
    expect(() => parseSimulatedAnchor(pretender.rootPem)).toThrow('does not say that it is simulated');
    expect(() => parseSimulatedAnchor('not PEM')).toThrow(DerError);
  });
});

describe('the nonce', () => {
  const key = Uint8Array.from({ length: 65 }, (_, index) => index);
  const random = new Uint8Array(16).fill(9);

  test('is the hash of prefix, key, week and random bytes', () => {
    const preimage = noncePreimage(key, 2945, random);
    const expected = sha256(Buffer.concat([Buffer.from('inference/mda/v1\0'), key, Buffer.from([0, 0, 0, 0, 0, 0, 0x0b, 0x81]), random]));
    expect(deviceNonce(preimage)).toEqual(expected);
    expect(deviceNonce({ ...preimage, epoch: 2946 })).not.toEqual(expected);
    expect(deviceNonce({ ...preimage, se_public_key: toBase64(key.map((byte) => byte ^ 1)) })).not.toEqual(expected);
  });

  test('is refused for malformed inputs', () => {
    const preimage = noncePreimage(key, 1, random);
    expect(deviceNonce({ ...preimage, random: toBase64(random.subarray(1)) })).toBeNull();
    expect(deviceNonce({ ...preimage, se_public_key: 'AAAA' })).toBeNull();
    expect(deviceNonce({ ...preimage, se_public_key: '*' })).toBeNull();
    expect(deviceNonce({ ...preimage, epoch: -1 })).toBeNull();
    expect(deviceNonce({ ...preimage, epoch: 0.5 })).toBeNull();
    expect(() => noncePreimage(key.subarray(1), 1, random)).toThrow(RangeError);
  });

  test('changes once a week; that of ACME is the hash of its token', () => {
    expect([0, 604_799_999, 604_800_000].map(weeklyEpoch)).toEqual([0, 0, 1]);
    expect(toHex(acmeFreshness('abc') ?? new Uint8Array())).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(acmeFreshness('')).toBeNull();
  });
});
