/** A placement terminates even if the clock changes. An endless loop would block the whole coordinator. */
import type { ModelOffer } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { ThroughputStats } from '../../src/cost/throughput-stats.js';
import type { ProviderFacts } from '../../src/eligibility.js';
import { MAX_ROUNDS, Scheduler } from '../../src/placement/scheduler.js';
import { ModelIndex } from '../../src/pool/model-index.js';
import { DEFAULT_CONSTANTS } from '../../src/scheduler-constants.js';
import { anyone, id, NOW, provider } from '../providers.js';

const hardware = { chip_family: 'M4', cpu_cores: 12, gpu_cores: 38, bandwidth_gbs: 400 };
const offer: ModelOffer = { id: 'm', model_type: 'text', display_name: 'm', quantization: '8bit', context_length: 4096 };
const subjectOf = (name: string) => ({ models: [offer], registration: { identity: { providerId: id(name) }, hardware } });
type Subject = ReturnType<typeof subjectOf>;

const WITH_KEY = { keyNotAfter: Number.POSITIVE_INFINITY };

/** Clock that cycles through these readings, and throws if a placement does not terminate. */
function clockOf(...readings: readonly [number, ...number[]]): () => number {
  let reads = 0;
  return () => {
    if (++reads > 1000) throw new Error('the choice does not end');
    return readings[(reads - 1) % readings.length] as number;
  };
}

/** Providers whose trust ends at `NOW + 1`, listed at `NOW`. `stands`: the facts after a refresh. */
function placementOf(names: readonly string[], now: () => number, stands: (facts: ProviderFacts) => ProviderFacts | null) {
  const models = new ModelIndex<Subject>(new ThroughputStats());
  const listed = new Map<Subject, ProviderFacts>();
  for (const name of names) {
    const { facts } = provider(name, { ...WITH_KEY, trustValidUntil: NOW + 1 });
    const subject = subjectOf(name);
    listed.set(subject, facts);
    models.update(subject, facts, NOW);
  }
  let looks = 0;
  const placement = new Scheduler<Subject>({
    models,
    now,
    random: () => 0.5,
    facts: (subject) => {
      looks++;
      return stands(listed.get(subject) as ProviderFacts);
    },
    isDistrusted: () => false,
  });
  return { pools: models, placement, looks: () => looks };
}

describe('a choice among expired members', () => {
  it('refreshes them, and chooses among the unchanged ones', () => {
    const { placement } = placementOf(['a', 'b'], clockOf(NOW + 2), (facts) => ({ ...facts, trustValidUntil: NOW + 100 }));
    expect(placement.choose('m', anyone).decision.kind).toBe('placed');
  });

  it('ends when the clock is set back between two readings', () => {
    const { placement, pools, looks } = placementOf(['a', 'b'], clockOf(NOW + 2, NOW - 3), (facts) => facts);
    const { decision, now } = placement.choose('m', anyone);
    // At the earlier reading, no facts have expired.
    expect([decision.kind, now, looks()]).toEqual(['none', NOW - 3, 2]);
    expect(pools.pool('m')?.size).toBe(2);
  });

  it('skips a replaced session, and removes it', () => {
    const { placement, pools } = placementOf(['gone'], clockOf(NOW + 2), () => null);
    expect(placement.choose('m', anyone).decision).toMatchObject({ kind: 'none', reason: 'none_routable' });
    expect(pools.pool('m')).toBeUndefined();
    const both = placementOf(['gone', 'here'], clockOf(NOW + 2), (facts) =>
      facts.providerId === 'gone' ? null : { ...facts, trustValidUntil: NOW + 100 },
    );
    const { decision } = both.placement.choose('m', anyone);
    expect(decision.kind === 'placed' && decision.ordered[0].member.facts.providerId).toBe('here');
  });

  it('ends after a few rounds also when a refresh changes nothing, with the remaining members', () => {
    const models = new ModelIndex<Subject>(new ThroughputStats());
    const { facts } = provider('a', { ...WITH_KEY, trustValidUntil: NOW + 1 });
    const subject = subjectOf('a');
    models.update(subject, facts, NOW);
    // The facts are valid at the time of the decision, whatever the clock reads afterwards.
    models.update = () => {};
    let looks = 0;
    const look = (): ProviderFacts => {
      looks++;
      return facts;
    };
    const placement = new Scheduler<Subject>({ models, now: clockOf(NOW + 2), random: () => 0.5, facts: look, isDistrusted: () => false });
    expect(placement.choose('m', anyone).decision).toMatchObject({ kind: 'none', reason: 'none_routable' });
    expect(looks).toBe(MAX_ROUNDS);
  });
});

describe('a provider pool', () => {
  it('makes idle providers overdue at once, and only once each, with a threshold of zero', () => {
    const pools = new ModelIndex<Subject>(new ThroughputStats(), { ...DEFAULT_CONSTANTS, overdueMs: 0 });
    pools.update(subjectOf('idle'), provider('idle', WITH_KEY).facts, NOW);
    pools.update(subjectOf('busy'), provider('busy', { ...WITH_KEY, usedSlots: 1 }).facts, NOW);
    expect(pools.poolAt('m', NOW + 1000)?.hasOverdue).toBe(true);
    expect(pools.pool('m')?.member(id('busy'))?.isOverdue).toBe(false);
  });

  it('notices idle providers also after the clock was set back', () => {
    const pools = new ModelIndex<Subject>(new ThroughputStats());
    const ahead = NOW + 10 * 3_600_000;
    pools.poolAt('m', ahead);
    const { facts } = provider('idle', WITH_KEY);
    pools.update(subjectOf('idle'), facts, ahead);
    pools.poolAt('m', ahead + 1000);
    expect(pools.poolAt('m', NOW)?.hasOverdue).toBe(false);
    expect(pools.poolAt('m', NOW + 31 * 60_000)?.hasOverdue).toBe(true);
  });
});
