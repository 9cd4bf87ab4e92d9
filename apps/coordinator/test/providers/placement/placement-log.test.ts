/** Verdicts on placement decisions: recorded when made, at a cost that does not depend on the number of providers. */

import { DEFAULT_CONSTANTS, DEFAULT_HOST_STATE, type PlacementRequest, ProviderPool, schedule } from '@inference/scheduler';
import { describe, expect, it } from 'vitest';
import { anyone, chance, id, NOW, provider, type TestProvider } from '../../../../../packages/scheduler/test/providers.js';
import { PlacementLog } from '../../../src/providers/placement/placement-log.js';
import { passedVerdict } from '../../../src/providers/placement/placement-verdict.js';

interface Subject {
  readonly name: string;
  readonly models: readonly { readonly id: string }[];
  readonly evidence: { readonly lastChallenge: { readonly answeredAt: number } };
}

/** Providers of one model, and a function that places requests on them. */
function fleetOf(providers: readonly TestProvider[]) {
  const pool = new ProviderPool<Subject>();
  const log = new PlacementLog<Subject>();
  const subjects = new Map<string, Subject>();
  for (const { facts, speed } of providers) {
    const subject = { name: facts.providerId, models: [{ id: 'm' }], evidence: { lastChallenge: { answeredAt: NOW - 420_000 } } };
    subjects.set(subject.name, subject);
    pool.put(subject, facts, speed, 8192, NOW);
    log.follow(subject);
  }
  const random = chance(7);
  const place = (request: PlacementRequest = anyone, now = NOW) => {
    const decision = schedule(pool, request, now, random);
    log.decided('m', pool, request, decision, now);
    return decision;
  };
  const of = (name: string): Subject => subjects.get(name) as Subject;
  const reportedOf = (name: string) =>
    log.entries(of(name)).map(({ verdict: { outcome, reason }, count }) => `${count} ${outcome} ${reason}`);
  return { pool, log, place, of, reportedOf };
}

describe('the verdict of a decision', () => {
  it('is a code and a number for every provider not chosen', () => {
    const fast = provider('fast', {}, { decodeTps: 100, prefillTps: 1200 });
    const others = [
      provider('slow', {}, { decodeTps: 20, prefillTps: 240 }),
      provider('alike', {}, { decodeTps: 100, prefillTps: 1200 }),
      provider('hot', { host: { ...DEFAULT_HOST_STATE, thermal: 'critical' } }),
      provider('stale', { trustLevel: null }),
      provider('paused', { backoffUntil: NOW + 700 }),
      provider('failed'),
    ];
    const { pool } = fleetOf([fast, ...others]);
    const request = { ...anyone, exclude: new Set([id('failed')]) };
    const decision = schedule(pool, request, NOW, chance(1));
    const verdicts = others.map(({ facts }) => {
      const member = pool.member(facts.providerId);
      return member === undefined ? null : passedVerdict(member, request, decision, { now: NOW, constants: DEFAULT_CONSTANTS });
    });
    expect(verdicts).toEqual([
      { outcome: 'not_chosen', reason: 'slower', ms: expect.any(Number) },
      { outcome: 'not_chosen', reason: 'near_tie', ms: null },
      { outcome: 'gate', reason: 'too_hot', ms: null },
      { outcome: 'gate', reason: 'untrusted', ms: null },
      { outcome: 'gate', reason: 'held_off', ms: 700 },
      { outcome: 'not_eligible', reason: 'failed_before', ms: null },
    ]);
    // 300 prompt tokens at 20 instead of 100 per second, twice 200 at 240 instead of 1200. Rates are quantized in steps of a quarter.
    expect(verdicts[0]?.ms).toBeGreaterThan(0.8 * (12_000 + 1333));
    expect(verdicts[0]?.ms).toBeLessThan(1.25 * (12_000 + 1333));
  });

  it('names trust where the request required more', () => {
    const { place, reportedOf } = fleetOf([provider('hard', { trustLevel: 'hardware' }), provider('soft')]);
    place({ ...anyone, trustFloor: 'hardware' });
    expect(reportedOf('soft')).toEqual(['1 not_eligible below_trust_floor']);
    expect(reportedOf('hard')).toEqual(['1 chosen cheapest']);
  });

  it('concerns nobody else when the client named a provider', () => {
    const { place, reportedOf } = fleetOf([provider('a'), provider('b')]);
    place({ ...anyone, providerSerial: 'S-a' });
    expect([reportedOf('a'), reportedOf('b')]).toEqual([['1 chosen named'], []]);
  });

  it('is not `named` where the request only filters providers', () => {
    const { place, reportedOf } = fleetOf([provider('a'), provider('b')]);
    place({ ...anyone, candidates: new Set([id('a')]) });
    expect([reportedOf('a'), reportedOf('b')]).toEqual([['1 chosen cheapest'], []]);
  });

  it('exists also when no provider got the request, with the age of the challenge where trust is missing', () => {
    const { place, reportedOf, log, of } = fleetOf([provider('stale', { trustLevel: null })]);
    place();
    place();
    expect(reportedOf('stale')).toEqual(['2 gate untrusted']);
    expect(NOW - (log.entries(of('stale'))[0]?.challengedAt ?? 0)).toBe(420_000);
  });
});

describe('the history', () => {
  it('of a few providers has every decision, in few entries', () => {
    const { place, reportedOf, log, of } = fleetOf([provider('a', {}, { decodeTps: 100, prefillTps: 1200 }), provider('b')]);
    for (let count = 0; count < 500; count++) place();
    expect([reportedOf('a'), reportedOf('b')]).toEqual([['500 chosen cheapest'], ['500 not_chosen slower']]);
    expect([log.share(of('a'), 'm'), log.share(of('b'), 'm')]).toEqual([
      { placements: 500, share: 1 },
      { placements: 0, share: 0 },
    ]);
  });

  it('of many providers visits every one, two at a time', () => {
    const names = Array.from({ length: 1000 }, (_, index) => `p${index}`);
    const { place, log, of } = fleetOf([
      provider('fast', {}, { decodeTps: 200, prefillTps: 2400 }),
      ...names.map((name) => provider(name)),
    ]);
    for (let count = 0; count < 300; count++) place();
    const recorded = () => names.filter((name) => log.entries(of(name)).length > 0).length;
    expect(recorded()).toBeGreaterThan(590);
    expect(recorded()).toBeLessThanOrEqual(600);
    for (let count = 0; count < 300; count++) place();
    expect(recorded()).toBe(1000);
  });

  it('stays bounded, with the newest first', () => {
    const { place, log, of } = fleetOf([provider('a', {}, { decodeTps: 100, prefillTps: 1200 }), provider('b')]);
    place();
    for (const model of Array.from({ length: 200 }, (_, index) => `m${index}`)) {
      const pool = new ProviderPool<Subject>();
      const { facts, speed } = provider('b', { isDraining: true });
      pool.put(of('b'), facts, speed, 8192, NOW);
      log.decided(model, pool, anyone, { kind: 'busy', expired: [] }, NOW + Number(model.slice(1)));
    }
    const entries = log.entries(of('b'));
    expect(entries.map(({ model }) => model)).toEqual(Array.from({ length: 24 }, (_, index) => `m${199 - index}`));
  });

  it('counts the share of placements since a connection began', () => {
    const { place, log, pool } = fleetOf([provider('a'), provider('b')]);
    for (let count = 0; count < 100; count++) place();
    const late = { name: 'late', models: [{ id: 'm' }], evidence: { lastChallenge: { answeredAt: NOW } } };
    const { facts, speed } = provider('late', {}, { decodeTps: 400, prefillTps: 4800 });
    pool.put(late, facts, speed, 8192, NOW);
    log.follow(late);
    expect(log.share(late, 'm')).toEqual({ placements: 0, share: null });
    for (let count = 0; count < 10; count++) place();
    expect(log.share(late, 'm')).toEqual({ placements: 10, share: 1 });
  });

  it('drops the counts of models that a connection no longer offers, but never those of its offers', () => {
    const { place, log, of } = fleetOf([provider('a')]);
    place();
    const a = { ...of('a'), models: [] as { readonly id: string }[] };
    const offer = (...ids: readonly string[]): void => {
      a.models = ids.map((id) => ({ id }));
      log.follow(a);
    };
    const pool = new ProviderPool<Subject>();
    const { facts, speed } = provider('a');
    pool.put(a, facts, speed, 8192, NOW);
    const placed = (model: string): void => log.decided(model, pool, anyone, schedule(pool, anyone, NOW, chance(7)), NOW);
    offer('kept', 'dropped');
    placed('kept');
    placed('dropped');
    for (let message = 0; message < 40; message++) offer('kept', ...Array.from({ length: 63 }, (_, index) => `m${message}-${index}`));
    expect(log.share(a, 'kept')).toEqual({ placements: 1, share: 1 });
    expect(log.share(a, 'dropped')).toEqual({ placements: 0, share: null });
    expect(log.share(a, null)).toEqual({ placements: 2, share: 1 });
  });

  it('keeps the counts of a model that a connection offers again', () => {
    const { place, log, of } = fleetOf([provider('a')]);
    place();
    log.follow(Object.assign(of('a'), { models: [] }));
    place();
    log.follow(Object.assign(of('a'), { models: [{ id: 'm' }] }));
    expect(log.share(of('a'), 'm')).toEqual({ placements: 2, share: 1 });
  });
});
