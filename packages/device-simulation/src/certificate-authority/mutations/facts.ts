/** Mutations of certified facts: another machine, weaker protections, another nonce, an old timestamp. */
import type { AttestedDevice } from '../device-extensions.js';
import type { ChainMutation, ChainSample, MutationBench } from '../mutation-bench.js';

const DAY_MS = 24 * 60 * 60_000;

const device = (bench: MutationBench, change: Partial<AttestedDevice>): ChainSample =>
  bench.sample({ chain: bench.chain(undefined, change) });
const claims = (bench: MutationBench, change: Partial<ChainSample['claims']>): ChainSample =>
  bench.sample({ claims: { ...bench.sample().claims, ...change } });

export const factMutations: readonly ChainMutation[] = [
  { name: "another machine's serial number", code: 'serial_mismatch', make: (b) => device(b, { serialNumber: 'SM9Z8Y7X6W' }) },
  { name: 'a machine that says another serial number', code: 'serial_mismatch', make: (b) => claims(b, { serialNumber: 'SM9Z8Y7X6W' }) },
  { name: "another machine's UDID", code: 'udid_mismatch', make: (b) => device(b, { provisioningUdid: '00006041-00112233AABBCCDD' }) },
  {
    name: 'a machine that says the UDID in lower case',
    code: 'udid_mismatch',
    make: (b) => claims(b, { provisioningUdid: '00006041-00112233aabbccdc' }),
  },
  { name: 'another board', code: 'board_mismatch', make: (b) => device(b, { softwareUpdateDeviceId: 'J616sAP' }) },
  { name: 'a machine that claims a larger chip', code: 'chip_mismatch', make: (b) => claims(b, { chipName: 'Apple M3 Ultra' }) },
  { name: 'a machine that claims no chip of the maker', code: 'chip_mismatch', make: (b) => claims(b, { chipName: 'Xeon' }) },
  {
    name: 'a chip that is newer than this list',
    code: null,
    make: (b) => {
      const provisioningUdid = '00009999-00112233AABBCCDC';
      const sample = device(b, { provisioningUdid });
      return { ...sample, claims: { ...sample.claims, provisioningUdid, chipName: 'Apple M9' } };
    },
  },
  { name: 'system integrity protection off', code: 'sip_disabled', make: (b) => device(b, { sipEnabled: false }) },
  { name: 'reduced security', code: 'secure_boot_reduced', make: (b) => device(b, { secureBoot: 'Reduced Security' }) },
  { name: 'permissive security', code: 'secure_boot_reduced', make: (b) => device(b, { secureBoot: 'Permissive Security' }) },
  { name: 'kernel extensions allowed', code: 'kexts_allowed', make: (b) => device(b, { thirdPartyKextsAllowed: true }) },
  { name: 'a freshness code of another nonce', code: 'freshness_mismatch', make: (b) => b.sample({ freshness: b.random(32) }) },
  {
    name: 'a freshness code with one bit flipped',
    code: 'freshness_mismatch',
    make: (b) => b.sample({ freshness: b.freshness.map((byte, index) => (index === 31 ? byte ^ 1 : byte)) }),
  },
  { name: 'a chain of 31 days', code: 'too_old', make: (b) => b.sample({ now: b.now + 31 * DAY_MS }) },
  { name: 'a chain of 29 days', code: null, make: (b) => b.sample({ now: b.now + 29 * DAY_MS }) },
];
