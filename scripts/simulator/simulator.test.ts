/** Invariants of the scheduler in a small simulated network. */
import { describe, expect, it } from 'vitest';
import { EventQueue } from './event-queue.js';
import { BASELINES, SCHEDULER } from './policies.js';
import { Random, WeightedIndex, zipf } from './random.js';
import { type Scenario, simulate } from './simulate.js';
import { jain } from './statistics.js';

const WORLD: Scenario = { seed: 5, providers: 150, accounts: 60, requestsPerProvider: 30, hours: 1.4, burstShare: 0.15, loadedShare: 0.85 };

describe('the scheduler, in a network of some hundred machines', () => {
  const [randomPlacement, , perfect] = BASELINES as [(typeof BASELINES)[0], unknown, (typeof BASELINES)[0]];
  const ours = simulate(WORLD, SCHEDULER);
  const blind = simulate(WORLD, randomPlacement);

  it('answers sooner than random placement, and not much later than with perfect knowledge', () => {
    const knowing = simulate(WORLD, perfect);
    expect(ours.requests).toBeGreaterThan(2000);
    expect(ours.completion.mean).toBeLessThan(0.7 * blind.completion.mean);
    expect(ours.firstToken.mean).toBeLessThan(0.7 * blind.firstToken.mean);
    expect(ours.completion.mean).toBeLessThan(1.5 * knowing.completion.mean);
    expect(ours.refusedShare).toBeLessThanOrEqual(blind.refusedShare + 0.01);
  });

  it('is fair between accounts, and leaves nearly no machine without work for an hour', () => {
    expect(ours.fairness).toBeGreaterThan(0.9);
    expect(ours.idleShare).toBeLessThan(0.1);
    expect(simulate(WORLD, { ...SCHEDULER, constants: { ...SCHEDULER.constants, overdueShare: 0 } }).idleShare).toBeGreaterThan(
      ours.idleShare,
    );
  });

  it('finds out who is slower than they say, and who fails', () => {
    expect(ours.misreporting).toBeLessThan(0.5);
    expect(ours.faults).toBeLessThan(0.7 * blind.faults);
    let known = 0;
    for (const mac of ours.macs.filter(({ isMisreporting }) => isMisreporting)) {
      const { identity, hardware } = mac.registration;
      for (const [model, { decodeTps }] of mac.installedModels) {
        const speed = ours.network.speeds.estimate(identity.providerId, model, hardware);
        if (speed.samples < 3) continue;
        known++;
        expect(speed.decodeTps / decodeTps).toBeGreaterThan(0.3);
        expect(speed.decodeTps / decodeTps).toBeLessThan(3);
      }
    }
    expect(known).toBeGreaterThan(0);
  });

  it('sends conversations where they are known', () => {
    expect(ours.cachedShare).toBeGreaterThan(2 * blind.cachedShare);
    expect(ours.why.warm).toBeGreaterThan(0);
  });
});

describe('a burst for models that nobody has in memory', () => {
  it('makes fewer machines load when waiting is weighed against it', () => {
    const cold: Scenario = { ...WORLD, providers: 80, hours: 0.5, requestsPerProvider: 100, burstShare: 0.9, loadedShare: 0 };
    const { constants } = SCHEDULER;
    const weighed = simulate(cold, SCHEDULER);
    const thundering = simulate(cold, { ...SCHEDULER, constants: { ...constants, maxLoads: 1e9, loadPenaltyFactor: 0 } });
    expect(weighed.loads).toBeGreaterThan(0);
    expect(weighed.loads).toBeLessThan(thundering.loads);
  });
});

describe('a run', () => {
  it('comes again the same for the same seed, and otherwise for another', () => {
    const small: Scenario = { ...WORLD, providers: 30, hours: 0.3 };
    const facts = (seed: number): unknown => {
      const { macs: _, network: __, tookMs: ___, pickUs: ____, ...report } = simulate({ ...small, seed }, SCHEDULER);
      return report;
    };
    expect(facts(3)).toEqual(facts(3));
    expect(facts(3)).not.toEqual(facts(4));
  });
});

describe('virtual time', () => {
  it('lets things happen in their order, and those of one moment in the order of their making', () => {
    const [events, seen, random] = [new EventQueue(), [] as number[], new Random(9)];
    const times = Array.from({ length: 500 }, () => random.below(100));
    for (const [index, time] of times.entries()) events.at(time, () => seen.push(index));
    events.at(50, () => events.after(-5, () => expect(events.now).toBe(50)));
    events.runUntil(1000);
    const wanted = times.map((time, index) => [time, index] as const).sort(([a, i], [b, j]) => a - b || i - j);
    expect(seen).toEqual(wanted.map(([, index]) => index));
    expect(events.now).toBe(1000);
  });
});

describe('random distributions', () => {
  it('has the distributions that it says', () => {
    const random = new Random(1);
    const many = <T>(draw: () => T): T[] => Array.from({ length: 20_000 }, draw);
    const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(mean(many(() => random.exponential(7)))).toBeCloseTo(7, 0);
    expect(many(() => random.logNormal(5, 1)).sort((a, b) => a - b)[10_000]).toBeCloseTo(5, 0);
    const weighted = new WeightedIndex(zipf(3, 1));
    expect(many(() => weighted.draw(random)).filter((index) => index === 0).length / 20_000).toBeCloseTo(6 / 11, 1);
    expect(jain([1, 1, 1])).toBeCloseTo(1);
    expect(jain([1, 0, 0, 0])).toBeCloseTo(0.25);
  });
});
