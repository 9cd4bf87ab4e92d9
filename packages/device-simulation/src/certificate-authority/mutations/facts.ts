/** Mutations of certified facts: another machine, weaker protections, another nonce, an old timestamp. */
import type { AttestedDevice } from '../device-extensions.js';
import { type ChainMutation, type ChainSample, type MutationBench, sample } from '../mutation-bench.js';

const DAY_MS = 24 * 60 * 60_000;

const device = (bench: MutationBench, change: Partial<AttestedDevice>): ChainSample =>
  bench.sample({ chain: bench.chain(undefined, change) });
/** A device with this change, which claims the same. */
const consistent = (bench: MutationBench, change: Partial<AttestedDevice & ChainSample['claims']>): ChainSample => {
  const changed = device(bench, change);
  return { ...changed, claims: { ...changed.claims, ...change } };
};
const claims = (bench: MutationBench, change: Partial<ChainSample['claims']>): ChainSample =>
  bench.sample({ claims: { ...bench.sample().claims, ...change } });

export const factMutations: readonly ChainMutation[] = [
  sample("another machine's serial number", 'serial_mismatch', (b) => device(b, { serialNumber: 'SM9Z8Y7X6W' })),
  sample('a machine that says another serial number', 'serial_mismatch', (b) => claims(b, { serialNumber: 'SM9Z8Y7X6W' })),
  sample("another machine's UDID", 'udid_mismatch', (b) => device(b, { provisioningUdid: '00006041-00112233AABBCCDD' })),
  sample('a machine that says the UDID in lower case', 'udid_mismatch', (b) =>
    claims(b, { provisioningUdid: '00006041-00112233aabbccdc' }),
  ),
  sample('a UDID without a chip identifier', 'udid_malformed', (b) => consistent(b, { provisioningUdid: '10006041-00112233AABBCCDC' })),
  sample('a board of an unusual name', null, (b) => consistent(b, { softwareUpdateDeviceId: 'VMA2' })),
  sample('a board of 32 characters', null, (b) => consistent(b, { softwareUpdateDeviceId: 'J'.repeat(32) })),
  sample('a board of 33 characters', 'board_malformed', (b) => consistent(b, { softwareUpdateDeviceId: 'J'.repeat(33) })),
  sample('a version of six parts', 'os_version_malformed', (b) => device(b, { osVersion: '1.2.3.4.5.6' })),
  sample('a version with a part of five digits', 'os_version_malformed', (b) => device(b, { osVersion: '26.10000' })),
  sample('another board', 'board_mismatch', (b) => device(b, { softwareUpdateDeviceId: 'J616sAP' })),
  sample('a machine that claims a larger chip', 'chip_mismatch', (b) => claims(b, { chipName: 'Apple M3 Ultra' })),
  sample('a machine that claims no chip of the manufacturer', 'chip_mismatch', (b) => claims(b, { chipName: 'Xeon' })),
  sample('a chip that is newer than this list', null, (b) => {
    const provisioningUdid = '00009999-00112233AABBCCDC';
    const sample = device(b, { provisioningUdid });
    return { ...sample, claims: { ...sample.claims, provisioningUdid, chipName: 'Apple M9' } };
  }),
  sample('system integrity protection off', 'sip_disabled', (b) => device(b, { sipEnabled: false })),
  sample('reduced security', 'secure_boot_reduced', (b) => device(b, { secureBoot: 'Reduced Security' })),
  sample('permissive security', 'secure_boot_reduced', (b) => device(b, { secureBoot: 'Permissive Security' })),
  sample('kernel extensions allowed', 'kexts_allowed', (b) => device(b, { thirdPartyKextsAllowed: true })),
  sample('a freshness code of another nonce', 'freshness_mismatch', (b) => b.sample({ freshness: b.random(32) })),
  sample('a freshness code with one bit flipped', 'freshness_mismatch', (b) =>
    b.sample({ freshness: b.freshness.map((byte, index) => (index === 31 ? byte ^ 1 : byte)) }),
  ),
  sample('a chain of 31 days', 'too_old', (b) => b.sample({ now: b.now + 31 * DAY_MS })),
  sample('a chain of 29 days', null, (b) => b.sample({ now: b.now + 29 * DAY_MS })),
];
