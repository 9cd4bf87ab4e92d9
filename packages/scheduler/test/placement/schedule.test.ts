import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { costModelOf, costOf, traitsOf } from '../../src/cost/job-cost.js';
import { DEFAULT_HOST_STATE, isTransient } from '../../src/eligibility.js';
import { ineligibleReasons } from '../../src/placement/provider-selection.js';
import { type PlacementRequest, type SchedulingDecision, schedule } from '../../src/placement/schedule.js';
import { DEFAULT_CONSTANTS } from '../../src/scheduler-constants.js';
import { anyone, anyProviders, anyRequest, chance, id, NOW, poolOf, provider, type TestProvider } from '../providers.js';

const namesOf = (decision: SchedulingDecision<string>): string[] =>
  decision.kind === 'placed' ? decision.ordered.map(({ member }) => member.subject) : [decision.kind];
const place = (providers: TestProvider[], request: PlacementRequest = anyone, seed = 1): SchedulingDecision<string> =>
  schedule(poolOf(providers), request, NOW, chance(seed));

/** Number of times that each provider is the first choice. */
function firsts(providers: TestProvider[], rounds: number, request = anyone): Map<string, number> {
  const counts = new Map(providers.map(({ facts }) => [facts.providerId as string, 0]));
  const [pool, random] = [poolOf(providers), chance(7)];
  for (let round = 0; round < rounds; round++) {
    const [first] = namesOf(schedule(pool, request, NOW, random));
    if (first !== undefined) counts.set(first, (counts.get(first) ?? 0) + 1);
  }
  return counts;
}

describe('a choice', () => {
  it('never falls on an ineligible provider, and never misses an eligible one', () => {
    fc.assert(
      fc.property(anyProviders, anyRequest, fc.nat(), (providers, request, seed) => {
        const decision = place(providers, request, seed);
        const reasons = ineligibleReasons(poolOf(providers).members(), request, NOW);
        const eligible = providers.filter(({ facts }) => !reasons.has(facts.providerId));
        if (decision.kind !== 'placed') expect(eligible).toEqual([]);
        else {
          const names = namesOf(decision);
          expect(new Set(names).size).toBe(names.length);
          expect(names).toHaveLength(Math.min(4, eligible.length));
          for (const name of names) expect(eligible.map(({ facts }) => facts.providerId)).toContain(name);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('is within the margin of the best found by exhaustive search, except for measuring', () => {
    fc.assert(
      fc.property(anyProviders, anyRequest, fc.nat(), (providers, request, seed) => {
        const decision = place(providers, request, seed);
        if (decision.kind !== 'placed' || decision.ordered[0].why === 'measuring') return;
        const reasons = ineligibleReasons(poolOf(providers).members(), request, NOW);
        const eligible = providers.filter(({ facts }) => !reasons.has(facts.providerId));
        const costs = eligible.map(({ facts, speed }) => ({
          costMs: costOf(costModelOf(traitsOf(facts, speed)), request.work),
          isUntried: speed.samples === 0 && facts.trustLevel !== 'hardware',
        }));
        // An unproven provider must be cheaper than proven providers by a factor.
        const bestTried = Math.min(...costs.map(({ costMs, isUntried }) => (isUntried ? Number.POSITIVE_INFINITY : costMs)));
        const counted = costs.filter(({ costMs, isUntried }) => !isUntried || costMs <= bestTried / DEFAULT_CONSTANTS.unprovenFactor);
        const best = Math.min(...counted.map(({ costMs }) => costMs));
        const { facts, speed } = decision.ordered[0].member;
        expect(costOf(costModelOf(traitsOf(facts, speed)), request.work)).toBeLessThanOrEqual(
          best * DEFAULT_CONSTANTS.nearTieFactor + DEFAULT_CONSTANTS.nearTieMs,
        );
        expect(decision.ordered[0].estimate.firstTokenMs).toBeLessThanOrEqual(decision.ordered[0].estimate.completionMs);
      }),
      { numRuns: 500 },
    );
  });

  it('is the same for the same snapshot, request, clock and random numbers', () => {
    fc.assert(
      fc.property(anyProviders, anyRequest, fc.nat(), (providers, request, seed) => {
        expect(namesOf(place(providers, request, seed))).toEqual(namesOf(place(providers, request, seed)));
      }),
    );
  });

  it('prefers faster, less loaded, healthy providers without recent failures', () => {
    expect(namesOf(place([provider('slow', {}, { decodeTps: 20 }), provider('fast', {}, { decodeTps: 80 })]))).toEqual(['fast', 'slow']);
    expect(namesOf(place([provider('busy', { usedSlots: 2 }), provider('idle')]))).toEqual(['idle', 'busy']);
    const hot = provider('hot', { host: { ...DEFAULT_HOST_STATE, thermal: 'serious' } });
    expect(namesOf(place([hot, provider('cool')]))).toEqual(['cool', 'hot']);
    expect(namesOf(place([provider('failing', { recentFailures: 1 }), provider('busy', { usedSlots: 1 })]))).toEqual(['busy', 'failing']);
  });

  it('weighs prompt and answer by their lengths', () => {
    const reader = provider('reader', {}, { prefillTps: 4000, decodeTps: 20 });
    const writer = provider('writer', {}, { prefillTps: 300, decodeTps: 80 });
    expect(namesOf(place([reader, writer], { ...anyone, work: { promptTokens: 30_000, completionTokens: 50 } }))[0]).toBe('reader');
    expect(namesOf(place([reader, writer], { ...anyone, work: { promptTokens: 50, completionTokens: 2000 } }))[0]).toBe('writer');
  });

  it('is fair among equals, and among near-equals', () => {
    const equals = ['a', 'b', 'c'].map((name) => provider(name));
    const nearly = provider('d', {}, { decodeTps: 52 });
    for (const count of firsts([...equals, nearly], 4000).values()) expect(Math.abs(count - 1000)).toBeLessThan(120);
  });

  it('gives unmeasured providers a share, and not more', () => {
    const counts = firsts([provider('known', {}, { decodeTps: 200 }), provider('new', {}, { decodeTps: 5, samples: 0 })], 4000);
    expect(Math.abs((counts.get('new') ?? 0) - 4000 * DEFAULT_CONSTANTS.measuringShare)).toBeLessThan(60);
    const decision = schedule(poolOf([provider('new', {}, { samples: 0 }), provider('known')]), anyone, NOW, () => 0);
    expect(decision).toMatchObject({ kind: 'placed', ordered: [{ why: 'measuring', member: { subject: 'new' } }, { why: 'alternate' }] });
  });

  it('measures idle providers first', () => {
    const providers = [
      provider('busy', { usedSlots: 1 }, { samples: 0 }),
      provider('idle', {}, { samples: 0, decodeTps: 1 }),
      provider('known'),
    ];
    expect(namesOf(schedule(poolOf(providers), anyone, NOW, () => 0))[0]).toBe('idle');
  });

  it('falls on the named provider or on none', () => {
    const named = { ...anyone, providerSerial: 'S-slow' };
    const [slow, fast] = [provider('slow', {}, { decodeTps: 2 }), provider('fast', {}, { decodeTps: 900 })];
    expect(namesOf(place([slow, fast], named))).toEqual(['slow']);
    expect(place([fast], named)).toMatchObject({ kind: 'none', reason: 'no_such_serial' });
    expect(place([provider('slow', { usedSlots: 4 }), fast], named)).toMatchObject({ kind: 'busy' });
    expect(place([slow, fast], { ...named, exclude: new Set([id('slow')]) })).toMatchObject({ kind: 'none', reason: 'all_failed' });
  });

  it('falls on the best candidate that is left, or on none', () => {
    const sealed = { ...anyone, candidates: new Set([id('slow'), id('fast'), id('gone')]) };
    const all = [
      provider('slow', {}, { decodeTps: 2 }),
      provider('fast', {}, { decodeTps: 900 }),
      provider('other', {}, { decodeTps: 2000 }),
    ];
    expect(namesOf(place(all, sealed))[0]).toBe('fast');
    expect(namesOf(place(all, { ...sealed, exclude: new Set([id('fast')]) }))).toEqual(['slow']);
    expect(place([provider('slow', { usedSlots: 4 }), provider('other')], sealed)).toMatchObject({ kind: 'busy' });
    expect(place([provider('other')], sealed)).toMatchObject({ kind: 'none', reason: 'no_such_serial' });
    expect(ineligibleReasons(poolOf(all).members(), sealed, NOW)).toEqual(new Map([[id('other'), 'other_serial']]));
  });

  it('falls on no provider that claims the serial number of one with a certificate chain, busy or not', () => {
    const named = { ...anyone, providerSerial: 'S' };
    const copy = provider('copy', { serialNumber: 'S' }, { decodeTps: 900 });
    const real = provider('real', { serialNumber: 'S', trustLevel: 'hardware' }, { decodeTps: 2 });
    expect(namesOf(place([copy, real], named))).toEqual(['real']);
    const busy = provider('real', { serialNumber: 'S', trustLevel: 'hardware', usedSlots: 4 });
    expect(place([copy, busy], named)).toMatchObject({ kind: 'busy' });
    expect(ineligibleReasons(poolOf([copy, real]).members(), named, NOW)).toEqual(new Map([[id('copy'), 'other_serial']]));
    expect(place([copy, provider('other', { serialNumber: 'S' })], named)).toMatchObject({ kind: 'none', reason: 'no_such_serial' });
  });

  it('respects the requested trust level', () => {
    const floor = { ...anyone, trustFloor: 'hardware' as const };
    const soft = provider('soft', {}, { decodeTps: 500 });
    expect(namesOf(place([soft, provider('hard', { trustLevel: 'hardware' })], floor))).toEqual(['hard']);
    expect(place([soft], floor)).toMatchObject({ kind: 'none', reason: 'below_trust_floor' });
    expect(place([soft, provider('hard', { trustLevel: 'hardware', usedSlots: 4 })], floor)).toMatchObject({ kind: 'busy' });
  });

  it('distinguishes transient from lasting reasons', () => {
    fc.assert(
      fc.property(anyProviders, anyRequest, (providers, request) => {
        const decision = place(providers, request);
        if (decision.kind === 'placed' || decision.expired.length > 0) return;
        const reasons = [...ineligibleReasons(poolOf(providers).members(), request, NOW).values()];
        const mayPass = reasons.some(
          (reason) => reason !== 'other_serial' && reason !== 'failed_before' && reason !== 'below_trust_floor' && isTransient(reason),
        );
        expect(decision.kind).toBe(mayPass ? 'busy' : 'none');
      }),
      { numRuns: 500 },
    );
    expect(place([provider('a', { isQuarantined: true })])).toMatchObject({ kind: 'none', reason: 'none_routable' });
    expect(place([])).toMatchObject({ kind: 'none', reason: 'none_routable' });
  });

  it('does not fall on a provider whose facts have expired, and reports it', () => {
    const pool = poolOf([provider('a', { trustValidUntil: NOW + 10 }), provider('b', { keyNotAfter: NOW + 5 })]);
    const decision = schedule(pool, anyone, NOW + 20, chance(1));
    expect(decision).toMatchObject({ kind: 'none' });
    expect(decision.expired.map(({ subject }) => subject).sort()).toEqual(['a', 'b']);
  });
});

describe('ineligible reasons', () => {
  it('name the reason of every ineligible provider', () => {
    const providers = [
      provider('ok'),
      provider('full', { usedSlots: 4 }),
      provider('drains', { isDraining: true }),
      provider('lied', { isQuarantined: true }),
      provider('failed'),
      provider('old', { keyNotAfter: NOW }),
      provider('stale', { trustValidUntil: NOW }),
      provider('unknown', { trustLevel: null }),
      provider('paused', { backoffUntil: NOW + 1 }),
      provider('hot', { host: { ...DEFAULT_HOST_STATE, thermal: 'critical' } }),
      provider('swaps', { host: { ...DEFAULT_HOST_STATE, memoryPressure: 'critical' } }),
      provider('empty', { host: { ...DEFAULT_HOST_STATE, power: 'low_battery' } }),
    ];
    const demands = { providerSerial: null, exclude: new Set([id('failed')]), trustFloor: null };
    expect(Object.fromEntries(ineligibleReasons(poolOf(providers).members(), demands, NOW))).toEqual({
      full: 'no_free_slot',
      drains: 'draining',
      lied: 'quarantined',
      failed: 'failed_before',
      old: 'key_expired',
      stale: 'untrusted',
      unknown: 'untrusted',
      paused: 'held_off',
      hot: 'too_hot',
      swaps: 'no_memory',
      empty: 'low_battery',
    });
    const other = ineligibleReasons(poolOf(providers).members(), { ...demands, providerSerial: 'S-ok', trustFloor: 'hardware' }, NOW);
    expect(other.get(id('ok'))).toBe('below_trust_floor');
    expect(other.get(id('full'))).toBe('other_serial');
  });
});
