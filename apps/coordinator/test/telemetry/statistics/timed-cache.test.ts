import { describe, expect, it } from 'vitest';
import { TimedCache } from '../../../src/telemetry/statistics/timed-cache.js';

/** A cache of 60 s whose clock and computations the test controls. */
function cacheUnderTest() {
  let time = 1_000_000;
  let makings = 0;
  let gate: Promise<void> = Promise.resolve();
  const cache = new TimedCache({
    maxAgeMs: 60_000,
    now: () => time,
    make: async (now) => {
      const making = ++makings;
      await gate;
      return { making, now };
    },
  });
  return {
    cache,
    makings: () => makings,
    pass: (ms: number) => {
      time += ms;
    },
    hold: (): { open: () => void; fail: (error: Error) => void } => {
      let open = (): void => {};
      let fail = (_error: Error): void => {};
      gate = new Promise((resolve, reject) => {
        open = resolve;
        fail = reject;
      });
      return { open, fail };
    },
    free: () => {
      gate = Promise.resolve();
    },
  };
}

describe('a cached value', () => {
  it('is computed once per period and reports its age', async () => {
    const { cache, pass, makings } = cacheUnderTest();
    expect(await cache.get()).toEqual({ value: { making: 1, now: 1_000_000 }, ageSeconds: 0 });
    pass(1999);
    expect((await cache.get()).ageSeconds).toBe(1);
    pass(58_000);
    expect(await cache.get()).toMatchObject({ value: { making: 1 }, ageSeconds: 59 });
    pass(1);
    expect(await cache.get()).toMatchObject({ value: { making: 2, now: 1_060_000 }, ageSeconds: 0 });
    expect(makings()).toBe(2);
  });

  it('is computed once for concurrent callers', async () => {
    const { cache, hold, makings } = cacheUnderTest();
    const { open } = hold();
    const asking = Array.from({ length: 1000 }, () => cache.get());
    open();
    const answers = await Promise.all(asking);
    expect(new Set(answers.map(({ value }) => value.making))).toEqual(new Set([1]));
    expect(makings()).toBe(1);
  });

  it('counts its age from the start of its computation', async () => {
    const { cache, hold, pass } = cacheUnderTest();
    const { open } = hold();
    const first = cache.get();
    pass(5000);
    open();
    await first;
    expect((await cache.get()).ageSeconds).toBe(5);
  });

  it('is not cached after a failure, and the next caller retries', async () => {
    const { cache, hold, free, makings } = cacheUnderTest();
    const { fail } = hold();
    const asking = [cache.get(), cache.get()];
    fail(new Error('the database is away'));
    for (const one of asking) await expect(one).rejects.toThrow('the database is away');
    free();
    expect((await cache.get()).value.making).toBe(2);
    expect(makings()).toBe(2);
  });

  it('does not outlive a clock that is set back', async () => {
    const { cache, pass } = cacheUnderTest();
    await cache.get();
    pass(-3_600_000);
    expect((await cache.get()).value.making).toBe(2);
  });
});
