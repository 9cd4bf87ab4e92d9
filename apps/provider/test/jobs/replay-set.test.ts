/** Replay protection retains values until their requests expire, and refuses rather than forgets. */
import { expect, test } from 'vitest';
import { ReplaySet } from '../../src/jobs/channel/replay-set.js';

test('accepts each value once, until it expires', () => {
  const replays = new ReplaySet();
  expect(replays.add(['enc 1', 'nonce 1'], { until: 1000, now: 0 })).toBe('added');
  expect(replays.add(['enc 1', 'nonce 2'], { until: 1000, now: 1000 })).toBe('replayed');
  expect(replays.add(['enc 2', 'nonce 1'], { until: 1000, now: 1000 })).toBe('replayed');
  expect(replays.add(['nonce 2'], { until: 1000, now: 1000 })).toBe('added');
});

test('refuses new values while full, and accepts values after old values expired', () => {
  const replays = new ReplaySet(4);
  expect(replays.add(['a', 'b'], { until: 100, now: 0 })).toBe('added');
  expect(replays.add(['c', 'd'], { until: 200, now: 0 })).toBe('added');
  expect(replays.add(['e', 'f'], { until: 300, now: 100 })).toBe('full');
  expect(replays.add(['a', 'x'], { until: 300, now: 100 })).toBe('replayed');
  expect(replays.add(['e', 'f'], { until: 300, now: 101 })).toBe('added');
  expect(replays.size).toBe(4);
  expect(replays.add(['c', 'x'], { until: 300, now: 101 })).toBe('replayed');
});

test('forgets expired values in time', () => {
  const replays = new ReplaySet();
  for (let minute = 0; minute < 100; minute++) {
    const now = minute * 60_000;
    expect(replays.add([`enc ${minute}`], { until: now + 120_000, now })).toBe('added');
    expect(replays.size).toBeLessThanOrEqual(4);
  }
});

test('refuses values that were forgotten while the clock was ahead', () => {
  const replays = new ReplaySet();
  expect(replays.add(['a'], { until: 120_000, now: 0 })).toBe('added');
  expect(replays.add(['b'], { until: 900_000, now: 600_000 })).toBe('added');
  expect(replays.size, 'a was removed').toBe(1);
  expect(replays.add(['a'], { until: 120_000, now: 1000 })).toBe('expired');
  expect(replays.add(['b'], { until: 900_000, now: 1000 })).toBe('replayed');
  expect(replays.add(['c'], { until: 600_000, now: 1000 })).toBe('added');
});

test('remembers the latest sweep when a full set is swept with an earlier time', () => {
  const replays = new ReplaySet(1);
  expect(replays.add(['a'], { until: 200_000, now: 100_000 })).toBe('added');
  expect(replays.add(['b'], { until: 300_000, now: 250_000 })).toBe('added');
  expect(replays.add(['c'], { until: 280_000, now: 1000 })).toBe('full');
  expect(replays.add(['a'], { until: 200_000, now: 1000 })).toBe('expired');
});
