import { createHash, randomBytes } from 'node:crypto';
import { SAMPLE_DEVICE } from '@inference/device-simulation';
import { type Posture, TRUST_PARTS, TRUST_REASONS, type TrustPartName, type TrustReason } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { APPLE_TRUST_ANCHOR } from '../../../src/providers/verification/chain/trust-anchor.js';
import type { DeviceEvidence, DeviceFindings, TrustEvidence } from '../../../src/providers/verification/evidence.js';
import { REMEDIES, remedyFor } from '../../../src/providers/verification/remedies.js';
import { evaluateTrust, firstSelfSignedGap, type TrustVerdict } from '../../../src/providers/verification/trust-policy.js';
import { isAcmeVerified, verifyDeviceEvidence } from '../../../src/providers/verification/verify-device-evidence.js';
import { DAY_MS, DeviceWorld } from './device-fixtures.js';

const NOW = Date.UTC(2026, 5, 1);
const limits = { maxChallengeAgeMs: 7 * 60_000, maxManagementAgeMs: DAY_MS };
const world = new DeviceWorld(NOW);
const publicKey = new Uint8Array(randomBytes(65));
const publicKeySha256 = sha256Hex(publicKey);
const posture: Posture = { secure_enclave: false, sip_enabled: true, secure_boot_enabled: true, authenticated_root_enabled: true };
const serialNumber = SAMPLE_DEVICE.serialNumber;

const stored = world.evidence(publicKey, {}, NOW);
const attestation = {
  publicKeySha256,
  issuedAt: NOW,
  receivedAt: NOW,
  serialNumber,
  chipName: 'Simulated M-series',
  posture,
  simulated: true,
} as const;

function examined(change: Partial<DeviceEvidence> = {}, key = publicKeySha256): DeviceFindings {
  return verifyDeviceEvidence({ ...stored, ...change }, { publicKeySha256: key, attestation, anchor: world.anchor, now: NOW });
}

const device = examined();
const all: TrustEvidence = {
  publicKeySha256,
  attestation,
  challenge: { publicKeySha256, passedAt: NOW, posture, missedSince: 0 },
  sealingKey: { publicKeySha256, notAfter: NOW + 3_600_000 },
  device,
  allowSimulatedEnclave: true,
};

function partOf(verdict: TrustVerdict, name: TrustPartName): string {
  const part = verdict.parts.find((each) => each.name === name);
  return [part?.state, part?.reason, part?.detail].filter((word) => word !== null).join(' ');
}

describe('trust', () => {
  test('is hardware with every part, and names every part', () => {
    const verdict = evaluateTrust(all, NOW, limits);
    expect(verdict.level).toBe('hardware');
    expect(verdict.parts.map(({ name }) => name)).toEqual([...TRUST_PARTS]);
    expect(verdict.parts.every(({ state, reason }) => state === 'ok' && reason === null)).toBe(true);
    expect(firstSelfSignedGap(verdict)).toBeNull();
  });

  const security = stored.security as NonNullable<DeviceEvidence['security']>;
  const information = stored.information as NonNullable<DeviceEvidence['information']>;
  const otherKey = new Uint8Array(randomBytes(65));
  const otherSha256 = sha256Hex(otherKey);
  const chainOf = (change: Parameters<DeviceWorld['chain']>[1], key = publicKey) => ({ chain: world.chain(key, change, NOW) });

  const losses: readonly [name: string, change: Partial<TrustEvidence>, part: TrustPartName, state: string, level: 'self_signed' | null][] =
    [
      ['no attestation', { attestation: null }, 'attestation', 'missing attestation_missing', null],
      [
        'an attestation of another key',
        { attestation: { ...attestation, publicKeySha256: otherSha256 } },
        'attestation',
        'failed evidence_of_another_key',
        null,
      ],
      [
        'an attestation that was old when it was shown',
        { attestation: { ...attestation, issuedAt: NOW - DAY_MS - 1 } },
        'attestation',
        'stale attestation_stale',
        null,
      ],
      ['a simulation that is not admitted', { allowSimulatedEnclave: false }, 'enclave', 'failed no_secure_enclave', null],
      [
        'SIP off in the attestation',
        { attestation: { ...attestation, posture: { ...posture, sip_enabled: false } } },
        'posture',
        'failed sip_disabled',
        null,
      ],
      [
        'SIP off in the last challenge',
        { challenge: { publicKeySha256, passedAt: NOW, missedSince: 0, posture: { ...posture, sip_enabled: false } } },
        'posture',
        'failed sip_disabled',
        null,
      ],
      [
        'secure boot off in the last challenge',
        { challenge: { publicKeySha256, passedAt: NOW, missedSince: 0, posture: { ...posture, secure_boot_enabled: false } } },
        'posture',
        'failed secure_boot_disabled',
        null,
      ],
      ['no challenge', { challenge: null }, 'challenge', 'missing challenge_unanswered', null],
      [
        'a challenge answered too long ago',
        { challenge: { publicKeySha256, passedAt: NOW - limits.maxChallengeAgeMs, missedSince: 0, posture } },
        'challenge',
        'stale challenge_stale',
        null,
      ],
      [
        'a challenge answered by another key',
        { challenge: { publicKeySha256: otherSha256, passedAt: NOW, missedSince: 0, posture } },
        'challenge',
        'failed evidence_of_another_key',
        null,
      ],
      ['no sealing key', { sealingKey: null }, 'sealing_key', 'missing sealing_key_missing', null],
      [
        'a sealing key that has expired',
        { sealingKey: { publicKeySha256, notAfter: NOW } },
        'sealing_key',
        'stale sealing_key_expired',
        null,
      ],
      [
        'a sealing key of another key',
        { sealingKey: { publicKeySha256: otherSha256, notAfter: NOW + 1000 } },
        'sealing_key',
        'failed evidence_of_another_key',
        null,
      ],
      ['no device management', { device: null }, 'device_management', 'missing not_enrolled', 'self_signed'],
      ['no enrolment', { device: examined({ enrolledAt: null }) }, 'device_management', 'missing not_enrolled', 'self_signed'],
      ['no security report', { device: examined({ security: null }) }, 'device_management', 'missing security_info_missing', 'self_signed'],
      [
        'SIP off for device management',
        { device: examined({ security: { ...security, sipEnabled: false } }) },
        'device_management',
        'failed managed_sip_disabled',
        'self_signed',
      ],
      ...(['medium', 'off', 'not supported'] as const).map((secureBootLevel): (typeof losses)[number] => [
        `boot security ${secureBootLevel} for device management`,
        { device: examined({ security: { ...security, secureBootLevel } }) },
        'device_management',
        'failed managed_secure_boot_not_full',
        'self_signed',
      ]),
      [
        'no disk encryption',
        { device: examined({ security: { ...security, diskEncryptionEnabled: false } }) },
        'device_management',
        'failed managed_disk_encryption_off',
        'self_signed',
      ],
      [
        'a system volume that only the machine calls sealed',
        { device: examined({ security: { ...security, authenticatedRootEnabled: false } }) },
        'device_management',
        'failed managed_root_volume_unsealed',
        'self_signed',
      ],
      [
        'a security report of yesterday',
        { device: examined({ security: { ...security, receivedAt: NOW - DAY_MS } }) },
        'device_management',
        'stale security_info_stale',
        'self_signed',
      ],
      [
        'no device information',
        { device: examined({ information: null }) },
        'device_identity',
        'missing device_information_missing',
        'self_signed',
      ],
      [
        'device information without a UDID',
        { device: examined({ information: { ...information, provisioningUdid: null } }) },
        'device_identity',
        'missing device_information_incomplete',
        'self_signed',
      ],
      [
        'another serial number in device management',
        { device: examined({ information: { ...information, serialNumber: 'ANOTHER001' } }) },
        'device_identity',
        'failed serial_number_differs',
        'self_signed',
      ],
      ['no chain', { device: examined({ chain: null }) }, 'device_chain', 'missing chain_missing', 'self_signed'],
      [
        "another machine's chain",
        { device: examined(chainOf({ serialNumber: 'ANOTHER001' })) },
        'device_chain',
        'failed chain_refused serial_mismatch',
        'self_signed',
      ],
      [
        'a chain of another UDID than device management says',
        { device: examined({ information: { ...information, provisioningUdid: '00006041-0000000000000001' } }) },
        'device_chain',
        'failed chain_refused udid_mismatch',
        'self_signed',
      ],
      [
        'a chain that says SIP is off',
        { device: examined(chainOf({ sipEnabled: false })) },
        'device_chain',
        'failed chain_refused sip_disabled',
        'self_signed',
      ],
      [
        'a chain of 31 days',
        { device: examined({ chain: world.chain(publicKey, {}, NOW - 31 * DAY_MS) }) },
        'device_chain',
        'stale chain_stale too_old',
        'self_signed',
      ],
      [
        'a chain with the nonce of an earlier week',
        { device: examined({ chain: world.chain(publicKey, {}, NOW, new Uint8Array(randomBytes(32))) }) },
        'key_binding',
        'stale binding_of_another_nonce freshness_mismatch',
        'self_signed',
      ],
      [
        'a chain that was made for another enclave key',
        { device: examined(chainOf({}, otherKey)) },
        'key_binding',
        'failed binding_of_another_key',
        'self_signed',
      ],
      [
        'evidence that was gathered for another key',
        { device: examined({ publicKeySha256: otherSha256 }) },
        'device_management',
        'failed evidence_of_another_key',
        'self_signed',
      ],
      [
        'a simulated chain for a real enclave',
        {
          attestation: { ...attestation, simulated: false, posture: { ...posture, secure_enclave: true } },
          challenge: { publicKeySha256, passedAt: NOW, missedSince: 0, posture: { ...posture, secure_enclave: true } },
        },
        'device_chain',
        'failed chain_of_another_world',
        'self_signed',
      ],
    ];

  test.each(losses)('with %s', (_name, change, part, state, level) => {
    const verdict = evaluateTrust({ ...all, ...change }, NOW, limits);
    expect(partOf(verdict, part)).toBe(state);
    expect(verdict.level).toBe(level);
  });

  test('does not pass to another enclave key, for every serial number', () => {
    const verdict = evaluateTrust({ ...all, publicKeySha256: otherSha256 }, NOW, limits);
    expect(verdict.level).toBeNull();
    const kept = verdict.parts.filter(({ name, state }) => state === 'ok' && name !== 'enclave' && name !== 'posture');
    expect(kept).toEqual([]);
  });

  test('under the pinned anchor is not raised by a simulated chain', () => {
    const real = verifyDeviceEvidence(stored, { publicKeySha256, attestation, anchor: APPLE_TRUST_ANCHOR, now: NOW });
    const verdict = evaluateTrust({ ...all, device: real }, NOW, limits);
    expect([verdict.level, partOf(verdict, 'device_chain')]).toEqual(['self_signed', 'failed chain_refused anchor_name']);
  });

  test('has ACME verified only for this key, with a fresh token, under its own kind of anchor', () => {
    const token = 'a-token-of-an-order';
    const { certificates } = world.chain(publicKey, {}, NOW, new Uint8Array(createHash('sha256').update(token).digest()));
    const proved = (change: Partial<DeviceEvidence>, key = publicKeySha256, simulated = true): boolean =>
      isAcmeVerified(examined({ acme: { receivedAt: NOW, certificates, token }, ...change }), { publicKeySha256: key, simulated });
    expect(proved({})).toBe(true);
    expect(proved({}, otherSha256)).toBe(false);
    expect(proved({}, publicKeySha256, false)).toBe(false);
    expect(proved({ acme: { receivedAt: NOW, certificates, token: 'another' } })).toBe(false);
    expect(proved({ acme: { receivedAt: NOW, certificates, token: '' } })).toBe(false);
    expect(proved({ acme: null })).toBe(false);
    expect(isAcmeVerified(null, { publicKeySha256, simulated: true })).toBe(false);
  });

  test('that survives a missed challenge reports the miss', () => {
    const challenge = { publicKeySha256, passedAt: NOW, missedSince: 1, posture };
    const verdict = evaluateTrust({ ...all, challenge }, NOW, limits);
    expect([verdict.level, partOf(verdict, 'challenge')]).toEqual(['hardware', 'ok challenge_missed']);
  });

  test('has a remedy for every reason, and a part for every reason shown to owners', () => {
    expect(Object.keys(REMEDIES).sort()).toEqual([...TRUST_REASONS].sort());
    for (const reason of TRUST_REASONS) expect(remedyFor(reason, null).length, reason).toBeGreaterThan(20);
    expect(remedyFor('chain_refused', 'kexts_allowed')).toContain('kernel extensions');
    const met = new Set(
      losses.flatMap(([, change]) => evaluateTrust({ ...all, ...change }, NOW, limits).parts.map(({ reason }) => reason)),
    );
    const unmet = TRUST_REASONS.filter((reason: TrustReason) => !met.has(reason));
    expect(unmet).toEqual(['challenge_missed']);
  });

  test('changes by the clock alone exactly at the announced time', () => {
    const ages = fc.integer({ min: -2 * DAY_MS, max: 40 * DAY_MS });
    const evidence = fc.record({
      challenge: ages,
      sealing: ages,
      security: ages,
      good: ages,
      missing: fc.constantFrom('none', 'challenge', 'device'),
    });
    fc.assert(
      fc.property(evidence, fc.nat(60 * DAY_MS), (ends, step) => {
        const chain = device.chain?.kind === 'verified' ? device.chain : null;
        if (chain === null) throw new Error('the sample chain does not verify');
        const sample: TrustEvidence = {
          ...all,
          challenge: ends.missing === 'challenge' ? null : { publicKeySha256, passedAt: NOW + ends.challenge, missedSince: 0, posture },
          sealingKey: { publicKeySha256, notAfter: NOW + ends.sealing },
          device:
            ends.missing === 'device'
              ? null
              : {
                  ...device,
                  security: { ...security, receivedAt: NOW + ends.security },
                  chain: { ...chain, facts: { ...chain.facts, goodUntil: NOW + ends.good } },
                },
        };
        const verdict = evaluateTrust(sample, NOW, limits);
        const later = NOW + step;
        const then = evaluateTrust(sample, Math.min(later, verdict.validUntil - 1), limits);
        expect({ ...then, validUntil: 0 }).toEqual({ ...verdict, validUntil: 0 });
        if (verdict.validUntil < Number.POSITIVE_INFINITY) {
          expect(evaluateTrust(sample, verdict.validUntil, limits).parts).not.toEqual(verdict.parts);
        }
      }),
      { numRuns: 300 },
    );
  });
});
