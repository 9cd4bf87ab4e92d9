/** Fixtures for the scheduler's tests: providers, and seeded random numbers. */
import type { ProviderId } from '@inference/protocol';
import fc from 'fast-check';
import type { ThroughputEstimate } from '../src/cost/job-cost.js';
import { DEFAULT_HOST_STATE, type ProviderFacts } from '../src/eligibility.js';
import type { PlacementRequest } from '../src/placement/schedule.js';
import { ProviderPool } from '../src/pool/provider-pool.js';

export const NOW = 1_000_000;

export interface TestProvider {
  readonly facts: ProviderFacts;
  readonly speed: ThroughputEstimate;
}

export const id = (name: string): ProviderId => name as ProviderId;

export function provider(name: string, facts: Partial<ProviderFacts> = {}, speed: Partial<ThroughputEstimate> = {}): TestProvider {
  return {
    facts: {
      providerId: id(name),
      serialNumber: `S-${name}`,
      isQuarantined: false,
      isDraining: false,
      keyNotAfter: NOW + 1,
      trustLevel: 'self_signed',
      trustValidUntil: Number.POSITIVE_INFINITY,
      backoffUntil: 0,
      slots: 4,
      usedSlots: 0,
      recentFailures: 0,
      host: DEFAULT_HOST_STATE,
      ...facts,
    },
    speed: { prefillTps: 600, decodeTps: 50, samples: 10, ...speed },
  };
}

export function poolOf(providers: readonly TestProvider[], now = NOW): ProviderPool<string> {
  const pool = new ProviderPool<string>();
  for (const { facts, speed } of providers) pool.put(facts.providerId, facts, speed, 8192, now);
  return pool;
}

export const anyone: PlacementRequest = {
  providerSerial: null,
  exclude: new Set(),
  trustFloor: null,
  work: { promptTokens: 200, completionTokens: 300 },
};

/** Numbers in [0, 1), repeatable by seed. */
export function chance(seed: number): () => number {
  let state = (seed % 2147483646) + 1;
  return () => {
    state = (state * 48271) % 2147483647;
    return (state - 1) / 2147483646;
  };
}

/** Any provider, eligible or not; some share a serial number. */
export const anyProvider = (name: string): fc.Arbitrary<TestProvider> =>
  fc
    .record({
      serialNumber: fc.constantFrom('S-1', 'S-2', `S-${name}`),
      quarantined: fc.boolean().map((value) => value && name.endsWith('3')),
      draining: fc.boolean().map((value) => value && name.endsWith('4')),
      keyNotAfter: fc.constantFrom(0, NOW, NOW + 1, NOW + 10_000),
      trustLevel: fc.constantFrom(null, 'self_signed' as const, 'hardware' as const, 'hardware' as const),
      trustValidUntil: fc.constantFrom(NOW, NOW + 1, Number.POSITIVE_INFINITY),
      heldOffUntil: fc.constantFrom(0, 0, NOW + 1),
      slots: fc.integer({ min: 1, max: 4 }),
      usedSlots: fc.integer({ min: 0, max: 4 }),
      failuresInARow: fc.constantFrom(0, 0, 0, 1, 2, 9),
      host: fc.record({
        thermal: fc.constantFrom('nominal' as const, 'nominal' as const, 'serious' as const, 'critical' as const),
        memoryPressure: fc.constantFrom('normal' as const, 'normal' as const, 'warning' as const, 'critical' as const),
        power: fc.constantFrom('mains' as const, 'mains' as const, 'battery' as const, 'low_battery' as const),
      }),
    })
    .chain((facts) =>
      fc
        .record({
          prefillTps: fc.double({ min: 1, max: 20_000, noNaN: true }),
          decodeTps: fc.double({ min: 0.01, max: 2000, noNaN: true }),
          samples: fc.integer({ min: 0, max: 5 }),
        })
        .map((speed) => provider(name, facts, speed)),
    );

export const anyProviders: fc.Arbitrary<TestProvider[]> = fc
  .integer({ min: 0, max: 24 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => anyProvider(`m${index}`))));

export const anyRequest: fc.Arbitrary<PlacementRequest> = fc.record({
  providerSerial: fc.constantFrom(null, null, null, 'S-1', 'S-9'),
  exclude: fc.subarray(['m0', 'm1', 'm2', 'm7']).map((names) => new Set(names.map(id))),
  trustFloor: fc.constantFrom(null, 'self_signed' as const, 'hardware' as const),
  work: fc.record({ promptTokens: fc.integer({ min: 1, max: 50_000 }), completionTokens: fc.integer({ min: 1, max: 8192 }) }),
});
