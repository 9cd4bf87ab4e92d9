/** Providers without a verified answer get a limited share of the jobs, whatever speed they claim, while others have free slots. */
import { describe, expect, it } from 'vitest';
import { NO_FILTER } from '../../src/eligibility.js';
import { schedule } from '../../src/placement/schedule.js';
import { ProviderPool } from '../../src/pool/provider-pool.js';
import { anyone, provider as anyProvider, chance, id, NOW, type TestProvider } from '../providers.js';

const JOBS = 2000;

/** Providers that get the jobs. Each job ends before the next starts. */
function placements(providers: readonly TestProvider[], request = anyone): Map<string, number> {
  const pool = new ProviderPool<string>();
  for (const { facts, speed } of providers) pool.put(facts.providerId, facts, speed, 8192, NOW);
  pool.refresh(NOW + 1000);
  const random = chance(7);
  const counts = new Map<string, number>();
  for (let job = 0; job < JOBS; job++) {
    const decision = schedule(pool, request, NOW, random);
    if (decision.kind !== 'placed') throw new Error(decision.kind);
    const { subject, facts } = decision.ordered[0].member;
    pool.jobPlaced(facts.providerId);
    counts.set(subject, (counts.get(subject) ?? 0) + 1);
  }
  return counts;
}

const provider: typeof anyProvider = (name, facts, speed) => anyProvider(name, { keyNotAfter: NOW + 3_600_000, ...facts }, speed);
const fast = (name: string): TestProvider => provider(name, {}, { prefillTps: 50_000, decodeTps: 5000, samples: 0 });

describe('untried providers', () => {
  it('get at most a tenth of the jobs beside a proven one', () => {
    const counts = placements([provider('proved'), fast('stranger'), fast('other')]);
    const strangers = (counts.get('stranger') ?? 0) + (counts.get('other') ?? 0);
    expect(strangers).toBeGreaterThan(0);
    expect(strangers).toBeLessThanOrEqual(JOBS / 10);
  });

  it.each([
    ['a filter', { filter: NO_FILTER }],
    ['candidates', { candidates: new Set(['proved', 'stranger', 'other'].map(id)) }],
  ])('get no more of the jobs of requests with %s', (_, selection) => {
    const counts = placements([provider('proved'), fast('stranger'), fast('other')], { ...anyone, ...selection });
    expect(JOBS - (counts.get('proved') ?? 0)).toBeLessThanOrEqual(JOBS / 10);
  });

  it('are capped by the measured speeds of providers that a filter leaves out', () => {
    const strangers = [fast('stranger'), provider('slow', {}, { samples: 0 })];
    const ignoredIds = new Set([id('proved')]);
    const counts = placements([provider('proved'), ...strangers], { ...anyone, filter: { ...NO_FILTER, ignoredIds } });
    expect(counts.get('slow')).toBeGreaterThan(JOBS / 4);
  });

  it('get no job that failed elsewhere while a proven one has room', () => {
    const proved = provider('proved');
    const counts = placements([proved, fast('stranger')], { ...anyone, exclude: new Set([provider('gone').facts.providerId]) });
    expect(counts.get('proved')).toBe(JOBS);
  });

  it('get all of them when no proven one has room, the fastest the most', () => {
    const busy = provider('busy', { usedSlots: 4, slots: 4 });
    expect(placements([busy, fast('stranger')]).get('stranger')).toBe(JOBS);
    const slow = provider('slow', {}, { samples: 0 });
    expect(placements([slow, fast('stranger')]).get('stranger')).toBeGreaterThan(0.9 * JOBS);
  });

  it('get jobs when the proven ones are busy', () => {
    const loaded = provider('loaded', { usedSlots: 3, slots: 4 });
    expect(placements([loaded, fast('stranger')]).get('stranger')).toBeGreaterThan(0.9 * JOBS);
  });

  it('count as proven with a manufacturer certificate chain', () => {
    const vouched = provider('vouched', { trustLevel: 'hardware' }, { samples: 0 });
    const counts = placements([provider('proved'), vouched]);
    expect(counts.get('vouched')).toBeGreaterThan(JOBS / 4);
  });
});
