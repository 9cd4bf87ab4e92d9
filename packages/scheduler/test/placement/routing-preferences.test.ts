import type { ProviderId } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { NO_FILTER, type ProviderFilter, selectsProviders } from '../../src/eligibility.js';
import { comparedWork } from '../../src/placement/group-ranking.js';
import { selectedMembers } from '../../src/placement/provider-selection.js';
import { type PlacementRequest, schedule } from '../../src/placement/schedule.js';
import { ProviderPool } from '../../src/pool/provider-pool.js';
import { anyone, chance, id, NOW, provider } from '../providers.js';

/** Three measured providers: the second has the fastest decode, the third the fastest prefill. */
function pool(): ProviderPool<string> {
  const pool = new ProviderPool<string>();
  const speeds = [
    { prefillTps: 1000, decodeTps: 50 },
    { prefillTps: 100, decodeTps: 200 },
    { prefillTps: 8000, decodeTps: 5 },
  ];
  for (const [index, speed] of speeds.entries()) {
    const { facts } = provider(`p${index}`);
    const own = { ...facts, serialNumber: `SERIAL${index}`, servesFallbackModels: index === 1, servesChoices: index === 2 };
    pool.put(`p${index}`, own, { ...speed, samples: 10 }, 4096, NOW, undefined, {
      quantization: index === 2 ? '4bit' : '8bit',
      maxImages: index,
    });
  }
  return pool;
}

const chosen = (request: Partial<PlacementRequest>): string[] => {
  const decision = schedule(pool(), { ...anyone, work: { promptTokens: 1000, completionTokens: 400 }, ...request }, NOW, chance(3));
  return decision.kind === 'placed' ? decision.ordered.map(({ member }) => member.subject) : [decision.kind];
};

describe('a sorted request', () => {
  it.each([
    ['throughput', 'p1'],
    ['latency', 'p2'],
  ] as const)('by %s gets the best provider every time', (sort, best) => {
    for (let seed = 0; seed < 20; seed++) {
      const decision = schedule(pool(), { ...anyone, work: { promptTokens: 1000, completionTokens: 400 }, sort }, NOW, chance(seed));
      expect(decision.kind === 'placed' ? decision.ordered[0].member.subject : null).toBe(best);
    }
  });

  it('keeps its real work for the estimate', () => {
    const work = { promptTokens: 1000, completionTokens: 400 };
    expect(comparedWork({ work })).toEqual(work);
    const decision = schedule(pool(), { ...anyone, work, sort: 'latency' }, NOW, chance(3));
    if (decision.kind !== 'placed') throw new Error('a provider is free');
    expect(decision.ordered[0].estimate.completionMs).toBeGreaterThan(decision.ordered[0].estimate.firstTokenMs);
    expect(decision.bestMs).toBe(decision.ordered[0].estimate.costMs);
  });
});

describe('a filter', () => {
  const ids = (filter: Partial<ProviderFilter>, more: Partial<PlacementRequest> = {}): string[] =>
    chosen({ filter: { ...NO_FILTER, ...filter }, ...more }).sort();

  it('leaves out providers by id, serial number, quantization and missing support', () => {
    expect(ids({})).toEqual(['p0', 'p1', 'p2']);
    expect(ids({ ignoredIds: new Set([id('p0')]) })).toEqual(['p1', 'p2']);
    expect(ids({ ignoredSerials: new Set(['SERIAL1']) })).toEqual(['p0', 'p2']);
    expect(ids({ quantizations: new Set(['4bit']) })).toEqual(['p2']);
    expect(ids({ servesFallbackModels: true })).toEqual(['p1']);
    expect(ids({ images: 1 })).toEqual(['p1', 'p2']);
    expect(ids({ images: 2 })).toEqual(['p2']);
    expect(ids({ servesChoices: true })).toEqual(['p2']);
    expect(ids({ quantizations: new Set(['fp8']) })).toEqual(['none']);
  });

  it('applies to candidates and named providers', () => {
    const candidates = new Set<ProviderId>([id('p0'), id('p1')]);
    expect(ids({ ignoredIds: new Set([id('p0')]) }, { candidates })).toEqual(['p1']);
    expect(ids({ ignoredIds: new Set([id('p0')]) }, { providerId: id('p0') })).toEqual(['none']);
    expect(ids({ quantizations: new Set(['4bit']) }, { providerSerial: 'SERIAL0' })).toEqual(['none']);
  });

  it('selects providers, so that a request without one does not wait', () => {
    const selection = { providerSerial: null, filter: { ...NO_FILTER, ignoredIds: new Set([id('p0'), id('p1'), id('p2')]) } };
    expect(selectsProviders(selection)).toBe(true);
    expect(selectedMembers(pool(), selection)).toEqual([]);
    expect(schedule(pool(), { ...anyone, ...selection }, NOW, chance(3))).toMatchObject({ kind: 'none', reason: 'no_such_serial' });
  });
});
