/** Models that are not in memory: cost of a load, when a load starts, and when waiting is better. */
import type { Hardware, ModelOffer } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { loadFromOffer, type ModelLoad, READY_LOAD, wasReady } from '../../src/cost/model-load.js';
import { ThroughputStats } from '../../src/cost/throughput-stats.js';
import type { ProviderFacts } from '../../src/eligibility.js';
import { type PlacementRequest, schedule } from '../../src/placement/schedule.js';
import { type IndexedProvider, ModelIndex } from '../../src/pool/model-index.js';
import { ProviderPool } from '../../src/pool/provider-pool.js';
import { DEFAULT_CONSTANTS } from '../../src/scheduler-constants.js';
import { anyone, chance, NOW, provider, type TestProvider } from '../providers.js';

const cold = (loadMs: number): ModelLoad => ({ kind: 'cold', loadMs });
const loading = (leftMs: number): ModelLoad => ({ kind: 'loading', readyAt: NOW + leftMs, loadMs: 60_000 });

function place(providers: readonly (readonly [TestProvider, ModelLoad])[], request: PlacementRequest = anyone) {
  const pool = new ProviderPool<string>();
  for (const [{ facts, speed }, load] of providers) pool.put(facts.providerId, facts, speed, 8192, NOW, load);
  return schedule(pool, request, NOW, chance(3));
}

function first(providers: readonly (readonly [TestProvider, ModelLoad])[], request?: PlacementRequest): string {
  const decision = place(providers, request);
  return decision.kind === 'placed' ? decision.ordered[0].member.subject : decision.kind;
}

describe('a provider without the model in memory', () => {
  it('comes after providers with the model, and its first token is expected after the load', () => {
    expect(
      first([
        [provider('cold', {}, { decodeTps: 60 }), cold(10_000)],
        [provider('ready'), READY_LOAD],
      ]),
    ).toBe('ready');
    const decision = place([[provider('cold'), cold(10_000)]]);
    expect(decision).toMatchObject({ kind: 'placed' });
    if (decision.kind === 'placed') expect(decision.ordered[0].estimate.firstTokenMs).toBeGreaterThan(8000);
  });

  it('is chosen if no other provider has the model, or if the others failed the request', () => {
    expect(first([[provider('cold'), cold(60_000)]])).toBe('cold');
    const failed = provider('ready', { usedSlots: 4 });
    const exclude = new Set([failed.facts.providerId]);
    expect(
      first(
        [
          [failed, READY_LOAD],
          [provider('cold'), cold(60_000)],
        ],
        { ...anyone, exclude, expectedWaitMs: 100 },
      ),
    ).toBe('cold');
  });

  it('does not load while waiting is expected to take less', () => {
    const providers = [
      [provider('full', { usedSlots: 4 }), READY_LOAD],
      [provider('cold'), cold(20_000)],
    ] as const;
    expect(first(providers, { ...anyone, expectedWaitMs: 3000 })).toBe('busy');
    expect(first(providers, { ...anyone, expectedWaitMs: 90_000 })).toBe('cold');
    expect(first(providers, { ...anyone, expectedWaitMs: null })).toBe('cold');
  });

  it('does not load while others load already', () => {
    const busy = Array.from(
      { length: DEFAULT_CONSTANTS.maxLoads },
      (_, index) => [provider(`l${index}`, { usedSlots: 4 }), loading(5000)] as const,
    );
    expect(first([...busy, [provider('cold'), cold(20_000)]])).toBe('busy');
    expect(first([...busy.slice(1), [provider('cold'), cold(20_000)]])).toBe('cold');
  });

  it('costs less as it loads', () => {
    const pool = new ProviderPool<string>();
    const forGood = { keyNotAfter: Number.POSITIVE_INFINITY };
    const [slow, soon] = [provider('slow', forGood, { decodeTps: 10 }), provider('soon', forGood)];
    pool.put('slow', slow.facts, slow.speed, 8192, NOW);
    pool.put('soon', soon.facts, soon.speed, 8192, NOW, loading(60_000));
    const chosen = (now: number): string => {
      pool.refresh(now);
      const decision = schedule(pool, anyone, NOW, chance(1));
      return decision.kind === 'placed' ? decision.ordered[0].member.subject : decision.kind;
    };
    expect(chosen(NOW)).toBe('slow');
    expect(chosen(NOW + 58_000)).toBe('soon');
  });
});

describe('a burst for an unloaded model', () => {
  it('fills the loading providers before it starts further loads', () => {
    const hardware: Hardware = { chip_family: 'M4', cpu_cores: 10, gpu_cores: 10, bandwidth_gbs: 120 };
    const pools = new ModelIndex<IndexedProvider>(new ThroughputStats());
    const offer: ModelOffer = {
      id: 'm',
      model_type: 'text',
      display_name: 'm',
      quantization: '4bit',
      context_length: 8192,
      state: 'on_demand',
      load_ms: 20_000,
    };
    const facts = new Map<IndexedProvider, ProviderFacts>();
    for (let index = 0; index < 50; index++) {
      const one = provider(`m${index}`).facts;
      const session = { models: [offer], registration: { identity: one, hardware } };
      facts.set(session, one);
      pools.update(session, one, NOW);
    }
    const begun = new Set<IndexedProvider>();
    let busy = 0;
    for (let count = 0; count < 40; count++) {
      const pool = pools.poolAt('m', NOW);
      const decision = pool === undefined ? null : schedule(pool, anyone, NOW, chance(count + 1));
      if (decision?.kind !== 'placed') {
        busy++;
        continue;
      }
      const { subject, facts: before } = decision.ordered[0].member;
      begun.add(subject);
      pools.jobPlaced(subject, 'm', NOW);
      pools.update(subject, { ...before, usedSlots: before.usedSlots + 1 }, NOW);
    }
    expect(begun.size).toBe(DEFAULT_CONSTANTS.maxLoads);
    expect(busy).toBe(40 - 4 * DEFAULT_CONSTANTS.maxLoads);
    expect(pools.pool('m')).toMatchObject({ loading: DEFAULT_CONSTANTS.maxLoads, slots: 4 * DEFAULT_CONSTANTS.maxLoads });
  });
});

describe('the reported load state', () => {
  const offer = { id: 'm', model_type: 'text', display_name: 'm', quantization: '4bit', context_length: 1 } as const;

  it('counts from its report, and a repeated report changes nothing', () => {
    expect(loadFromOffer(undefined, offer, NOW)).toEqual({ kind: 'ready', since: 0 });
    const told = loadFromOffer(undefined, { ...offer, state: 'loading', load_ms: 5000 }, NOW);
    expect(told).toEqual({ kind: 'loading', readyAt: NOW + 5000, loadMs: 5000 });
    expect(loadFromOffer(told, { ...offer, state: 'loading', load_ms: 5000 }, NOW + 2000)).toBe(told);
    expect(loadFromOffer(told, { ...offer, state: 'loading', load_ms: 1000 }, NOW + 2000)).toMatchObject({ readyAt: NOW + 3000 });
    expect(loadFromOffer(told, { ...offer, state: 'on_demand', load_ms: 5000 }, NOW + 9000)).toEqual(cold(5000));
  });

  it('excludes answers that began before the load from the throughput', () => {
    const told = loadFromOffer(cold(5000), { ...offer, state: 'ready' }, NOW);
    expect(wasReady(told, NOW - 1)).toBe(false);
    expect(wasReady(told, NOW)).toBe(true);
    expect(wasReady(loadFromOffer(told, offer, NOW + 5000), NOW + 1)).toBe(true);
    expect(wasReady(cold(5000), NOW)).toBe(false);
  });
});
