/** Good and bad releases on a simulated fleet, with the real decision code. docs/releasing.md shows the measured losses. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type ReleaseFault, type SimulationResult, simulateRelease } from './simulated-fleet.js';

const MACHINES = 2000;
const SEEDS = [1, 2, 3];
const MAX_NETWORK_LOSS = 0.02;
const MAX_MODEL_LOSS = 0.1;
const DOCUMENT = readFileSync(new URL('../../../../docs/releasing.md', import.meta.url), 'utf8').split('\n');

const BAD_RELEASES: readonly { readonly name: string; readonly fault: ReleaseFault; readonly reason: RegExp }[] = [
  { name: 'never comes back', fault: { isLost: true }, reason: /did not come back/ },
  { name: 'never comes back on M4', fault: { isLost: true, affects: ({ chip }) => chip === 'M4' }, reason: /On M4: .* did not come back/ },
  { name: 'fails its trial', fault: { failsTrial: true }, reason: /did not come back/ },
  { name: 'comes back and fails attestation', fault: { losesTrust: true }, reason: /lost their trust level/ },
  {
    name: 'fails attestation on M4',
    fault: { losesTrust: true, affects: ({ chip }) => chip === 'M4' },
    reason: /On M4: .* lost their trust level/,
  },
  { name: 'fails 5 % of requests', fault: { failureRate: 0.05 }, reason: /failed .* of .* requests/ },
  { name: 'is 40 % slower', fault: { speed: 0.6 }, reason: /of their earlier speed/ },
];

/** Row of the table: the worst result of all seeds. */
function row(name: string, results: readonly SimulationResult[]): string {
  const worst = (value: (result: SimulationResult) => number): number => Math.max(...results.map(value));
  const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
  const hours = worst((result) => result.hours).toFixed(1);
  return `| ${name} | ${hours} h | ${percent(worst(({ offered }) => offered))} | ${percent(worst(({ networkLoss }) => networkLoss))} | ${percent(worst(({ modelLoss }) => modelLoss))} |`;
}

describe('a bad release', () => {
  it.each(BAD_RELEASES)('that $name is halted early', ({ name, fault, reason }) => {
    const results = SEEDS.map((seed) => simulateRelease({ seed, machines: MACHINES, fault }));
    for (const result of results) {
      expect(result).toMatchObject({ outcome: 'halted', reason: expect.stringMatching(reason) });
      expect(result.networkLoss).toBeLessThan(MAX_NETWORK_LOSS);
      expect(result.modelLoss).toBeLessThan(MAX_MODEL_LOSS);
    }
    expect(DOCUMENT).toContain(row(name, results));
  });

  it('loses little when urgent, too', () => {
    const { outcome, networkLoss, modelLoss } = simulateRelease({ seed: 4, machines: MACHINES, fault: { isLost: true }, isUrgent: true });
    expect(outcome).toBe('halted');
    expect(networkLoss).toBeLessThan(MAX_NETWORK_LOSS);
    expect(modelLoss).toBeLessThan(MAX_MODEL_LOSS);
  });

  it('takes at most one machine of a tiny network at a time', () => {
    const { networkLoss, offered } = simulateRelease({ seed: 5, machines: 8, fault: { isLost: true }, maxHours: 20 });
    expect(offered).toBe(1 / 8);
    expect(networkLoss).toBeLessThan(1 / 2);
  });
});

describe('a good release', () => {
  it.each([
    [60, [1, 2, 3]],
    [300, [1]],
  ] as const)('reaches a fleet of %d machines without a halt', (machines, seeds) => {
    for (const seed of seeds) {
      const result = simulateRelease({ seed, machines, fault: null });
      expect(result).toMatchObject({ outcome: 'complete', reason: null });
      expect(result.modelLoss).toBeLessThan(MAX_MODEL_LOSS);
    }
  });

  it('completes within a day when urgent', () => {
    const { outcome, hours } = simulateRelease({ seed: 1, machines: 300, fault: null, isUrgent: true });
    expect(outcome).toBe('complete');
    expect(hours).toBeLessThan(24);
  });
});
