/** Placement by several coordinators is as good as by one, and no request is lost when a coordinator dies. */
import { describe, expect, it } from 'vitest';
import type { ClusterOptions } from './cluster.js';
import { SCHEDULER } from './policies.js';
import { type Scenario, simulate, simulateCluster } from './simulate.js';

const WORLD: Scenario = {
  seed: 5,
  providers: 120,
  accounts: 40,
  requestsPerProvider: 120,
  hours: 0.25,
  burstShare: 0.15,
  loadedShare: 0.85,
};
const OPTIONS: ClusterOptions = { owners: 3, digestDelayMs: 100, lossShare: 0.01, hasDeath: false, hasPrefixHints: true };

describe('several coordinators', () => {
  const single = simulate(WORLD, SCHEDULER);
  const cluster = simulateCluster(WORLD, SCHEDULER, OPTIONS);

  it('answer about as soon as one, and are rarely asked in vain', () => {
    expect(cluster.requests).toBeGreaterThan(1000);
    // In a small world, results vary by more than the 5 % that hold for a large one.
    expect(cluster.completion.mean).toBeLessThan(1.15 * single.completion.mean);
    expect(cluster.refusedShare).toBeLessThan(single.refusedShare + 0.02);
    expect(cluster.busyShare).toBeLessThan(0.05);
    expect(cluster.remoteShare).toBeGreaterThan(0.3);
    expect(cluster.digestSize.max).toBeLessThan(1000);
  });

  it('find the caches of conversations by published prefixes', () => {
    const blind = simulateCluster(WORLD, SCHEDULER, { ...OPTIONS, hasPrefixHints: false });
    expect(cluster.cachedShare).toBeGreaterThan(1.1 * blind.cachedShare);
  });

  it('answer the requests of a coordinator that dies, on machines that reconnect', () => {
    const report = simulateCluster(WORLD, SCHEDULER, { ...OPTIONS, hasDeath: true });
    expect(report.movedByDeath).toBeGreaterThan(0);
    expect(report.refusedShare).toBeLessThan(cluster.refusedShare + 0.02);
    expect(report.macs.every(({ running, online }) => online || running === 0)).toBe(true);
  });

  it('come again the same for the same seed', () => {
    const facts = (): unknown => {
      const world = { ...WORLD, providers: 40, hours: 0.1 };
      const {
        macs: _,
        network: __,
        tookMs: ___,
        pickUs: ____,
        ...report
      } = simulateCluster(world, SCHEDULER, { ...OPTIONS, hasDeath: true });
      return report;
    };
    expect(facts()).toEqual(facts());
  });
});
