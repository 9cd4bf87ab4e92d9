/** `PrefixAffinity`: which prefixes are stored, their weight, and their limits. */
import { describe, expect, it } from 'vitest';
import { PrefixAffinity, type PromptPrefix, type ProviderJobs } from '../../src/placement/prefix-affinity.js';
import { type PlacementRequest, schedule } from '../../src/placement/schedule.js';
import { ProviderPool } from '../../src/pool/provider-pool.js';
import { DEFAULT_CONSTANTS } from '../../src/scheduler-constants.js';
import { anyone, chance, id, NOW, poolOf, provider, type TestProvider } from '../providers.js';

const long: PlacementRequest = { ...anyone, work: { promptTokens: 8000, completionTokens: 300 } };
const warmAt = (name: string, tokens = 7500): PlacementRequest => ({ ...long, prefixCandidates: [{ providerId: id(name), tokens }] });

function first(providers: TestProvider[], request: PlacementRequest): { readonly name: string; readonly why: string } {
  const decision = schedule(poolOf(providers), request, NOW, chance(2));
  if (decision.kind !== 'placed') return { name: decision.kind, why: '' };
  const [{ member, why }] = decision.ordered;
  return { name: member.subject, why };
}

describe('a request with a cached prefix', () => {
  const others = Array.from({ length: 20 }, (_, index) => provider(`other${index}`));

  it('goes to that provider, also where others are somewhat faster, and expects its first token sooner', () => {
    expect(first([...others, provider('warm')], warmAt('warm'))).toEqual({ name: 'warm', why: 'warm' });
    expect(first([provider('fast', {}, { prefillTps: 900, decodeTps: 60 }), provider('warm')], warmAt('warm')).name).toBe('warm');
    const decision = schedule(poolOf([provider('warm')]), warmAt('warm'), NOW, chance(1));
    if (decision.kind === 'placed') expect(decision.ordered[0].estimate.firstTokenMs).toBeLessThan(1000);
    expect(decision.kind).toBe('placed');
  });

  it('goes elsewhere where that costs less than the saved time', () => {
    expect(first([...others, provider('warm', { usedSlots: 2 })], warmAt('warm', 300)).name).not.toBe('warm');
    expect(first([...others, provider('warm', {}, { decodeTps: 5 })], warmAt('warm', 2000)).name).not.toBe('warm');
    expect(first([...others, provider('warm', { recentFailures: 3 })], warmAt('warm')).name).not.toBe('warm');
  });

  it('never goes to an ineligible provider, and never takes the last slot for that reason', () => {
    const exclude = new Set([id('warm')]);
    expect(first([...others, provider('warm')], { ...warmAt('warm'), exclude }).name).not.toBe('warm');
    expect(first([...others, provider('warm')], { ...warmAt('warm'), trustFloor: 'hardware' }).name).toBe('none');
    expect(first([...others, provider('warm', { backoffUntil: NOW + 1 })], warmAt('warm')).name).not.toBe('warm');
    const busy = others.map(({ facts, speed }) => ({ facts: { ...facts, usedSlots: 3 }, speed }));
    expect(first([...busy, provider('warm', { usedSlots: 2 })], warmAt('warm')).why).toBe('warm');
    expect(first([...busy, provider('warm', { usedSlots: 3 })], warmAt('warm')).why).not.toBe('warm');
    expect(first([...others, provider('warm', { slots: 1 })], warmAt('warm')).why).toBe('warm');
    expect(first([...others], warmAt('gone')).name).toContain('other');
  });

  it('goes anywhere while affinity is off', () => {
    const pool = new ProviderPool<string>({ ...DEFAULT_CONSTANTS, affinityWeight: 0 });
    for (const { facts, speed } of [provider('warm'), ...others]) pool.put(facts.providerId, facts, speed, 8192, NOW);
    const decision = schedule(pool, warmAt('warm'), NOW, chance(2));
    expect(decision.kind === 'placed' && decision.ordered[0].why).toBe('near_tie');
  });
});

const promptPrefixes = (name: string, blocks: number): PromptPrefix[] =>
  Array.from({ length: blocks }, (_, index) => ({
    hash: [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) * 1000 + index,
    tokens: 256 * (index + 1),
  }));

describe('the cached prefixes of a provider', () => {
  const [a, b] = [id('a'), id('b')];
  const jobs = (placements: number): ProviderJobs => ({ placements, slots: 4, since: 0 });

  it('are the longest answered prefix, and the common beginnings of shorter ones', () => {
    const warmth = new PrefixAffinity();
    warmth.record(promptPrefixes('talk', 10), 0, a, jobs(1), NOW);
    const next = [...promptPrefixes('talk', 10), { hash: 1, tokens: 2816 }];
    const [place] = warmth.candidates(next, NOW, () => jobs(1));
    expect(place).toEqual({ providerId: a, tokens: 2560 * warmth.hitRate(a) });
    const parted = [...promptPrefixes('talk', 5), { hash: 2, tokens: 1536 }];
    expect(warmth.candidates(parted, NOW, () => jobs(1))[0]?.tokens).toBe(1024 * warmth.hitRate(a));
    expect(warmth.candidates(promptPrefixes('other', 10), NOW, () => jobs(1))).toEqual([]);
    expect(warmth.candidates(next, NOW, () => null)).toEqual([]);
  });

  it('fade with later jobs and with time, and end with the connection', () => {
    const warmth = new PrefixAffinity();
    warmth.record(promptPrefixes('talk', 4), 0, a, jobs(1), NOW);
    const tokens = (now: number, since: ProviderJobs): number =>
      warmth.candidates(promptPrefixes('talk', 4), now, () => since)[0]?.tokens ?? 0;
    expect(tokens(NOW, jobs(4))).toBe(tokens(NOW, jobs(1)));
    expect(tokens(NOW, jobs(9))).toBeLessThan(tokens(NOW, jobs(1)) / 2);
    expect(tokens(NOW + 3_600_000, jobs(1))).toBe(0);
    expect(tokens(NOW, { ...jobs(1), since: NOW + 1 })).toBe(0);
  });

  it('count by the hit rate in its receipts', () => {
    const warmth = new PrefixAffinity();
    const before = warmth.hitRate(a);
    for (let turn = 1; turn <= 8; turn++) {
      warmth.record(promptPrefixes('talk', turn + 4), turn === 1 ? 0 : 256 * (turn + 3), a, jobs(turn), NOW);
      warmth.record(promptPrefixes('talk', turn + 4), 0, b, jobs(turn), NOW);
    }
    expect(warmth.hitRate(a)).toBeGreaterThan(0.9);
    expect(warmth.hitRate(b)).toBeLessThan(0.1);
    expect(warmth.hitRate(b)).toBeGreaterThan(0);
    expect(before).toBeGreaterThan(warmth.hitRate(b));
    expect(warmth.candidates(promptPrefixes('talk', 12), NOW, () => jobs(8))[0]?.providerId).toBeDefined();
  });

  it('are bounded, and the oldest is evicted first', () => {
    const warmth = new PrefixAffinity();
    for (let index = 0; index < 201_000; index++) warmth.record([{ hash: index, tokens: 256 }], 0, a, jobs(1), NOW);
    expect(warmth.size).toBe(200_000);
    expect(warmth.candidates([{ hash: 0, tokens: 256 }], NOW, () => jobs(1))).toEqual([]);
    expect(warmth.candidates([{ hash: 200_999, tokens: 256 }], NOW, () => jobs(1))).toHaveLength(1);
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) warmth.record([{ hash: 5, tokens: 256 }], 0, id(name), jobs(1), NOW);
    expect(warmth.candidates([{ hash: 5, tokens: 256 }], NOW, () => jobs(1)).map(({ providerId }) => providerId)).toEqual([
      'f',
      'e',
      'd',
      'c',
    ]);
  });
});
