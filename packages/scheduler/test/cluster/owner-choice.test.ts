/** `chooseOwner`: cheapest class, near ties, local placements, model loads, and where to queue. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classCostMs, type ModelDigest, type ThroughputClass } from '../../src/cluster/model-digest.js';
import { chooseOwner, MAX_QUEUE_OWNERS, type OwnerChoice, type OwnerRequest, PEER_SILENCE_MS } from '../../src/cluster/owner-choice.js';
import type { OwnerId, OwnerState } from '../../src/cluster/owner-digests.js';
import { nearTieMs } from '../../src/placement/group-ranking.js';
import { DEFAULT_CONSTANTS } from '../../src/scheduler-constants.js';
import { chance, NOW } from '../providers.js';

const SEED = { seed: 22 };
const REQUEST: OwnerRequest = {
  work: { promptTokens: 500, completionTokens: 400 },
  contextTokens: 0,
  imageSize: null,
  trustFloor: null,
  excludedOwners: new Set(),
  excludedProviders: new Map(),
  prefix: null,
};

function classOf(changes: Partial<ThroughputClass> = {}): ThroughputClass {
  const freeSlots = changes.freeSlots ?? 4;
  const cheap = { isCold: false, totalSlots: freeSlots, trustedFreeSlots: 0, prefillTps: 1000, decodeTps: 50, waitMs: 0, penaltyMs: 0 };
  return { ...cheap, ...changes, freeSlots };
}

function stateOf(classes: readonly ThroughputClass[], changes: Partial<ModelDigest> = {}, state: Partial<OwnerState> = {}): OwnerState {
  const loaded = classes.filter(({ isCold }) => !isCold);
  const sum = (value: (one: ThroughputClass) => number): number => loaded.reduce((total, one) => total + value(one), 0);
  const digest: ModelDigest = {
    serving: 10,
    totalSlots: 40,
    freeSlots: sum(({ freeSlots }) => freeSlots),
    trustedSlots: 40,
    trustedFreeSlots: sum(({ trustedFreeSlots }) => trustedFreeSlots),
    cold: 0,
    loading: 0,
    queueLength: 0,
    meanServiceMs: 10_000,
    maxContextTokens: 8192,
    imageSizes: [],
    classes,
    ...changes,
  };
  return { digest, taken: [], heardAt: NOW, ...state };
}

function choose(states: Readonly<Record<OwnerId, OwnerState>>, request: Partial<OwnerRequest> = {}, seed = 1): OwnerChoice {
  return chooseOwner(new Map(Object.entries(states)), { ...REQUEST, ...request }, 'self', NOW, chance(seed));
}

const slower = (factor: number): ThroughputClass => classOf({ prefillTps: 1000 / factor, decodeTps: 50 / factor });

/** Number of times that each owner is chosen in 1000 choices. */
function asked(states: Readonly<Record<OwnerId, OwnerState>>, request: Partial<OwnerRequest> = {}): Record<string, number> {
  const counts: Record<string, number> = {};
  const [random, digests] = [chance(7), new Map(Object.entries(states))];
  for (let count = 0; count < 1000; count++) {
    const choice = chooseOwner(digests, { ...REQUEST, ...request }, 'self', NOW, random);
    const owner = choice.kind === 'ask' ? choice.owner : choice.kind;
    counts[owner] = (counts[owner] ?? 0) + 1;
  }
  return counts;
}

describe('a choice between owners with free slots', () => {
  it('is the cheapest', () => {
    const states = { self: stateOf([slower(2)]), a: stateOf([slower(1.5)]), b: stateOf([classOf()]) };
    expect(choose(states)).toMatchObject({ kind: 'ask', owner: 'b', classIndex: 0, loadedOnly: true, why: 'cheapest' });
  });

  it('is the own coordinator within 15 % of the cheapest, and not beyond', () => {
    const peer = stateOf([classOf()]);
    expect(choose({ self: stateOf([slower(1.14)]), peer })).toMatchObject({ owner: 'self', why: 'local' });
    expect(choose({ self: stateOf([slower(1.17)]), peer })).toMatchObject({ owner: 'peer', why: 'cheapest' });
  });

  it('is the own coordinator within 50 ms of the cheapest, however short the request', () => {
    const short = { work: { promptTokens: 1, completionTokens: 1 } };
    const peer = stateOf([classOf()]);
    // The time to the first token has double weight.
    expect(choose({ self: stateOf([classOf({ waitMs: 24 })]), peer }, short)).toMatchObject({ owner: 'self', why: 'local' });
    expect(choose({ self: stateOf([classOf({ waitMs: 40 })]), peer }, short)).toMatchObject({ owner: 'peer', why: 'cheapest' });
  });

  it('is drawn among equal peers by their free slots', () => {
    const free = (freeSlots: number): OwnerState => stateOf([classOf({ freeSlots })]);
    const counts = asked({ self: stateOf([slower(3)]), a: free(10), b: free(30), c: stateOf([slower(3)]) });
    expect(counts.a).toBeGreaterThan(200);
    expect(counts.a).toBeLessThan(300);
    expect((counts.a ?? 0) + (counts.b ?? 0)).toBe(1000);
  });

  it('subtracts own placements, and leaves a class when all of it is taken', () => {
    const classes = [classOf({ freeSlots: 3 }), slower(1.4)];
    const taken = (count: number) => choose({ peer: stateOf(classes, {}, { taken: [count] }) });
    expect(taken(2)).toMatchObject({ classIndex: 0 });
    expect(taken(3)).toMatchObject({ classIndex: 1 });
    expect(choose({ peer: stateOf(classes, {}, { taken: [3, 4] }) })).toMatchObject({ kind: 'queue', owners: ['peer'] });
  });

  it('leaves out owners that were asked, and silent owners', () => {
    const states = { a: stateOf([classOf()]), b: stateOf([slower(1.5)]) };
    expect(choose(states, { excludedOwners: new Set(['a']) })).toMatchObject({ owner: 'b' });
    const silent = stateOf([classOf()], {}, { heardAt: NOW - PEER_SILENCE_MS - 1 });
    expect(choose({ ...states, a: silent })).toMatchObject({ owner: 'b' });
    expect(choose({ self: silent })).toMatchObject({ kind: 'ask', owner: 'self' });
    expect(choose({ a: silent })).toEqual({ kind: 'none', reason: 'none_routable' });
  });

  it('needs free slots of trusted providers for a request that demands trust', () => {
    const states = { a: stateOf([classOf()]), b: stateOf([slower(2), { ...slower(3), trustedFreeSlots: 1 }]) };
    expect(choose(states, { trustFloor: 'hardware' })).toMatchObject({ owner: 'b', classIndex: 1 });
  });
});

describe('an owner with a cached prefix', () => {
  const work = { promptTokens: 5000, completionTokens: 200 };
  const prefix = { owner: 'warm', tokens: 4800 };

  it('is asked where the saved prompt makes up for slower providers', () => {
    const states = { self: stateOf([classOf()]), warm: stateOf([slower(1.4)]) };
    expect(choose(states, { work, prefix })).toMatchObject({ owner: 'warm', why: 'prefix' });
    expect(choose(states, { work })).toMatchObject({ owner: 'self', why: 'local' });
  });

  it('is not asked where the prefix does not, or nothing is free or in memory', () => {
    const self = stateOf([classOf()]);
    expect(choose({ self, warm: stateOf([slower(1.4)]) }, { work, prefix: { owner: 'warm', tokens: 10 } })).toMatchObject({
      owner: 'self',
    });
    expect(choose({ self, warm: stateOf([slower(40)]) }, { work, prefix })).toMatchObject({ owner: 'self' });
    expect(choose({ self, warm: stateOf([]) }, { work, prefix })).toMatchObject({ owner: 'self' });
    expect(choose({ self, warm: stateOf([classOf({ isCold: true })]) }, { work, prefix })).toMatchObject({ owner: 'self' });
  });
});

describe('owners whose providers would load the model first', () => {
  const cold = (loadMs: number): OwnerState => stateOf([classOf({ isCold: true, waitMs: loadMs })], { totalSlots: 0, cold: 5, serving: 5 });
  const full = (queueLength: number): OwnerState => stateOf([], { queueLength, meanServiceMs: 10_000 });

  it('are asked when nobody has the model', () => {
    expect(choose({ a: cold(60_000) })).toMatchObject({ kind: 'ask', owner: 'a', loadedOnly: false });
  });

  it('are asked when the wait is longer than the load', () => {
    expect(choose({ a: cold(20_000), b: full(200) })).toMatchObject({ kind: 'ask', owner: 'a' });
    expect(choose({ a: cold(20_000), b: full(10) })).toMatchObject({ kind: 'queue' });
  });

  it('are not asked while as many load as may at once', () => {
    const loading = stateOf([classOf({ isCold: true, waitMs: 20_000 })], { totalSlots: 0, cold: 1, serving: 5, loading: 4 });
    expect(choose({ a: loading, b: full(200) })).toMatchObject({ kind: 'queue' });
  });
});

describe('a request that no owner serves now', () => {
  it('queues at a few peers, never at the own coordinator or at one that cannot serve it', () => {
    const full = (slots: number): OwnerState => stateOf([], { totalSlots: slots });
    const states = { self: full(90), a: full(5), b: full(50), c: full(40), small: stateOf([], { maxContextTokens: 100 }) };
    const choice = choose(states, { contextTokens: 5000 });
    if (choice.kind !== 'queue') throw new Error(choice.kind);
    expect(choice.owners).toHaveLength(MAX_QUEUE_OWNERS);
    expect(new Set(choice.owners).size).toBe(MAX_QUEUE_OWNERS);
    for (const owner of choice.owners) expect(['a', 'b', 'c']).toContain(owner);
  });

  it('queues at peers in proportion to their slots, so that not all requests wait at the same', () => {
    const full = (slots: number): OwnerState => stateOf([], { totalSlots: slots, trustedSlots: slots });
    const states = { self: full(10), a: full(10), b: full(10), c: full(10), d: full(1), none: full(0) };
    for (const trustFloor of [null, 'hardware'] as const) {
      const counts: Record<string, number> = {};
      for (let seed = 0; seed < 1000; seed++) {
        const choice = choose(states, { trustFloor }, seed * 7_919_017);
        for (const owner of choice.kind === 'queue' ? choice.owners : []) counts[owner] = (counts[owner] ?? 0) + 1;
      }
      for (const owner of ['a', 'b', 'c']) expect(counts[owner]).toBeGreaterThan(550);
      expect(counts.d).toBeLessThan(150);
      expect(counts.none ?? 0).toBe(0);
    }
  });

  it('expects the wait of all queues together', () => {
    const states = { a: stateOf([], { queueLength: 30, totalSlots: 10 }), b: stateOf([], { queueLength: 9, totalSlots: 30 }) };
    expect(choose(states)).toMatchObject({ kind: 'queue', expectedWaitMs: (10_000 * 40) / 40 });
    expect(choose({ a: stateOf([], { meanServiceMs: null }) })).toMatchObject({ kind: 'queue', expectedWaitMs: null });
  });

  it.each([
    ['none_routable', { serving: 0 }, {}],
    ['context_too_long', {}, { contextTokens: 10_000 }],
    ['no_such_image_size', { imageSizes: ['512x512'] }, { imageSize: '1024x1024' }],
    ['below_trust_floor', { trustedSlots: 0 }, { trustFloor: 'hardware' }],
    ['all_failed', { serving: 2 }, { excludedProviders: new Map([['peer', 2]]) }],
  ] as const)('is refused as %s where waiting would not help', (reason, digest, request) => {
    expect(choose({ peer: stateOf([classOf()], digest) }, request)).toEqual({ kind: 'none', reason });
  });
});

describe('every choice', () => {
  const anyClass = fc.record({
    isCold: fc.boolean(),
    freeSlots: fc.integer({ min: 1, max: 9 }),
    totalSlots: fc.constant(9),
    trustedFreeSlots: fc.constantFrom(0, 1),
    prefillTps: fc.integer({ min: 10, max: 5000 }),
    decodeTps: fc.integer({ min: 1, max: 300 }),
    waitMs: fc.integer({ min: 0, max: 60_000 }),
    penaltyMs: fc.constantFrom(0, 0, 5000),
  });
  const anyState = fc
    .record({
      classes: fc.array(anyClass, { maxLength: 5 }),
      serving: fc.integer({ min: 0, max: 9 }),
      queueLength: fc.integer({ min: 0, max: 99 }),
      meanServiceMs: fc.option(fc.integer({ min: 1, max: 99_999 })),
      taken: fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 5 }),
      heardAt: fc.constantFrom(NOW, NOW - 2 * PEER_SILENCE_MS),
    })
    .map(({ classes, taken, heardAt, ...digest }) => stateOf(classes, digest, { taken, heardAt }));
  const anyStates = fc.array(anyState, { maxLength: 8 }).map((states) => {
    return Object.fromEntries(states.map((state, index) => [index === 0 ? 'self' : `c${index}`, state]));
  });

  it('asks for a free slot of a live owner, at no more than a near tie with the cheapest loaded class', () => {
    const anyRequest = fc.record({
      trustFloor: fc.constantFrom(null, 'hardware' as const),
      excludedOwners: fc.constantFrom(new Set(['c1'])),
    });
    fc.assert(
      fc.property(anyStates, anyRequest, fc.nat(), (states, request, seed) => {
        const choice = choose(states, request, seed);
        const freeOf = ({ taken }: OwnerState, one: ThroughputClass, index: number): number =>
          (request.trustFloor === null ? one.freeSlots : one.trustedFreeSlots) - (taken[index] ?? 0);
        const isAsked = (owner: OwnerId, { digest, heardAt }: OwnerState): boolean =>
          digest.serving > 0 && (owner === 'self' || heardAt === NOW) && !request.excludedOwners.has(owner);
        const costs = Object.entries(states).flatMap(([owner, state]) =>
          state.digest.classes.flatMap((one, index) =>
            isAsked(owner, state) && !one.isCold && freeOf(state, one, index) > 0 ? [classCostMs(one, REQUEST.work)] : [],
          ),
        );
        const cheapestMs = Math.min(...costs);
        if (choice.kind !== 'ask') {
          expect(costs).toEqual([]);
          if (choice.kind === 'queue') expect(choice.owners).not.toContain('self');
          return;
        }
        const state = states[choice.owner] as OwnerState;
        const one = state.digest.classes[choice.classIndex] as ThroughputClass;
        expect(isAsked(choice.owner, state)).toBe(true);
        expect(freeOf(state, one, choice.classIndex)).toBeGreaterThan(0);
        expect(choice.loadedOnly).toBe(!one.isCold);
        expect(classCostMs(one, REQUEST.work)).toBeLessThanOrEqual(nearTieMs(cheapestMs, DEFAULT_CONSTANTS));
      }),
      SEED,
    );
  });
});
