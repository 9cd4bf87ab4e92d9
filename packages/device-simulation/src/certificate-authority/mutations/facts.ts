/** Mutations of facts: another machine in the certificate or in the claims, weaker protections, another nonce, an old chain. */
import type { AttestedDevice } from '../device-extensions.js';
import { type ChainMutation, type ChainSample, type MutationBench, mutation } from '../mutation-bench.js';

const DAY_MS = 24 * 60 * 60_000;

const certifying = (bench: MutationBench, change: Partial<AttestedDevice>): ChainSample =>
  bench.sample({ chain: bench.chain(undefined, change) });
const certifyingAndClaiming = (bench: MutationBench, change: Partial<AttestedDevice & ChainSample['claims']>): ChainSample => {
  const changed = certifying(bench, change);
  return { ...changed, claims: { ...changed.claims, ...change } };
};
const claiming = (bench: MutationBench, change: Partial<ChainSample['claims']>): ChainSample =>
  bench.sample({ claims: { ...bench.sample().claims, ...change } });

export const factMutations: readonly ChainMutation[] = [
  mutation("another machine's serial number", 'serial_mismatch', (b) => certifying(b, { serialNumber: 'SM9Z8Y7X6W' })),
  mutation('a machine that says another serial number', 'serial_mismatch', (b) => claiming(b, { serialNumber: 'SM9Z8Y7X6W' })),
  mutation("another machine's UDID", 'udid_mismatch', (b) => certifying(b, { provisioningUdid: '00006041-00112233AABBCCDD' })),
  mutation('a machine that says the UDID in lower case', 'udid_mismatch', (b) =>
    claiming(b, { provisioningUdid: '00006041-00112233aabbccdc' }),
  ),
  mutation('a UDID without a chip identifier', 'udid_malformed', (b) =>
    certifyingAndClaiming(b, { provisioningUdid: '10006041-00112233AABBCCDC' }),
  ),
  mutation('a board of an unusual name', null, (b) => certifyingAndClaiming(b, { softwareUpdateDeviceId: 'VMA2' })),
  mutation('a board of 32 characters', null, (b) => certifyingAndClaiming(b, { softwareUpdateDeviceId: 'J'.repeat(32) })),
  mutation('a board of 33 characters', 'board_malformed', (b) => certifyingAndClaiming(b, { softwareUpdateDeviceId: 'J'.repeat(33) })),
  mutation('a version of six parts', 'os_version_malformed', (b) => certifying(b, { osVersion: '1.2.3.4.5.6' })),
  mutation('a version with a part of five digits', 'os_version_malformed', (b) => certifying(b, { osVersion: '26.10000' })),
  mutation('another board', 'board_mismatch', (b) => certifying(b, { softwareUpdateDeviceId: 'J616sAP' })),
  mutation('a machine that claims a larger chip', 'chip_mismatch', (b) => claiming(b, { chipName: 'Apple M3 Ultra' })),
  mutation('a machine that claims no chip of the manufacturer', 'chip_mismatch', (b) => claiming(b, { chipName: 'Xeon' })),
  mutation('a chip that no list of chips contains yet', null, (b) => {
    const provisioningUdid = '00009999-00112233AABBCCDC';
    const sample = certifying(b, { provisioningUdid });
    return { ...sample, claims: { ...sample.claims, provisioningUdid, chipName: 'Apple M9' } };
  }),
  mutation('system integrity protection off', 'sip_disabled', (b) => certifying(b, { sipEnabled: false })),
  mutation('reduced security', 'secure_boot_reduced', (b) => certifying(b, { secureBoot: 'Reduced Security' })),
  mutation('permissive security', 'secure_boot_reduced', (b) => certifying(b, { secureBoot: 'Permissive Security' })),
  mutation('kernel extensions allowed', 'kexts_allowed', (b) => certifying(b, { thirdPartyKextsAllowed: true })),
  mutation('a freshness code of another nonce', 'freshness_mismatch', (b) => b.sample({ freshness: b.random(32) })),
  mutation('a freshness code with one bit flipped', 'freshness_mismatch', (b) =>
    b.sample({ freshness: b.freshness.map((byte, index) => (index === 31 ? byte ^ 1 : byte)) }),
  ),
  mutation('a chain of 31 days', 'too_old', (b) => b.sample({ now: b.now + 31 * DAY_MS })),
  mutation('a chain of 29 days', null, (b) => b.sample({ now: b.now + 29 * DAY_MS })),
];
