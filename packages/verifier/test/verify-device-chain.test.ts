import 'reflect-metadata';
import { CHAIN_MUTATIONS, type ChainSample, MutationBench } from '@inference/device-simulation';
import { fromHex, toBase64, toHex } from '@inference/protocol';
import { X509Certificate } from '@peculiar/x509';
import { describe, expect, test } from 'vitest';
import { type DeviceChainVerdict, type TrustAnchor, verifyDeviceChain } from '../src/index.js';

const bench = new MutationBench();
const anchor: TrustAnchor = {
  name: new Uint8Array(new X509Certificate(bench.authority.rootPem).subjectName.toArrayBuffer()),
  publicKey: bench.authority.rootKey.point,
};
const MAX_AGE_MS = 30 * 86_400_000;

function verify(sample: ChainSample): DeviceChainVerdict {
  const { serialNumber, provisioningUdid, softwareUpdateDeviceId, chipName } = sample.claims;
  const expected = {
    serial: serialNumber,
    udid: provisioningUdid,
    board: softwareUpdateDeviceId,
    chip: chipName,
    freshness: [sample.freshness],
    maxAgeMs: MAX_AGE_MS,
  };
  return verifyDeviceChain(sample.chain, expected, sample.now, anchor);
}

describe('the chain verifier of outsiders', () => {
  test.each(CHAIN_MUTATIONS.map((mutation) => [mutation.name, mutation] as const))('%s', (_, mutation) => {
    const verdict = verify(mutation.make(bench));
    expect(verdict.ok ? null : verdict.code).toBe(mutation.code);
  });

  test('trusts only the pinned anchor unless given another', () => {
    expect(verify(bench.sample())).toMatchObject({ ok: true });
    const pinned = verifyDeviceChain(bench.sample().chain, {}, bench.now + 1);
    expect(pinned).toMatchObject({ ok: false, code: 'anchor_name', steps: ['encoding', 'path'] });
  });

  test('returns the facts of the leaf', () => {
    const verdict = verify(bench.sample());
    expect(verdict.ok && verdict.facts).toMatchObject({
      serial: 'SM0A1B2C3D',
      sipEnabled: true,
      secureBoot: 'Full Security',
      thirdPartyKexts: false,
    });
    expect(verdict.ok && toHex(verdict.facts.freshness)).toBe(toHex(bench.freshness));
    expect(verdict.steps).toEqual(['encoding', 'path', 'anchor', 'extensions', 'device', 'protections', 'freshness', 'age']);
  });

  test('never throws on random input', () => {
    const [leaf = '', issuer = ''] = bench.sample().chain;
    const bytes = Buffer.from(leaf, 'base64');
    for (let at = 0; at < bytes.length; at += 29) {
      const broken = Buffer.from(bytes);
      broken[at] = (broken[at] ?? 0) ^ (1 << (at % 8));
      const verdict = verify(bench.sample({ chain: [toBase64(broken), issuer] }));
      expect(verdict.ok, `byte ${at}`).toBe(false);
    }
    for (const text of ['', 'AA==', 'MAA=', toBase64(fromHex('30800000')), toBase64(fromHex('3003020100'))]) {
      expect(verify(bench.sample({ chain: [text, issuer] })).ok).toBe(false);
    }
  });
});
