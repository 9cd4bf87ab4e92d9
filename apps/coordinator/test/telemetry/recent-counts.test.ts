import { expect, it } from 'vitest';
import { RecentCounts } from '../../src/telemetry/recent-counts.js';

const MINUTE = 60_000;

it('counts cover a recent time span: older minutes are dropped one by one', () => {
  let now = 0;
  const recent = new RecentCounts(() => now, 3);
  recent.add('old');
  now = MINUTE;
  recent.add('new');
  recent.add('new');
  expect(recent.read()).toEqual([
    { code: 'new', count: 2 },
    { code: 'old', count: 1 },
  ]);
  now = 2 * MINUTE + MINUTE - 1;
  recent.add('old');
  expect(recent.read()).toEqual([
    { code: 'new', count: 2 },
    { code: 'old', count: 2 },
  ]);
  now = 3 * MINUTE;
  expect(recent.read()).toEqual([
    { code: 'new', count: 2 },
    { code: 'old', count: 1 },
  ]);
  now = 60 * MINUTE;
  expect(recent.read()).toEqual([]);
});

it('codes beyond the maximum per minute share one count, and none is lost', () => {
  const recent = new RecentCounts(() => 0, 60);
  for (let index = 0; index < 1000; index++) recent.add(`code-${index}`);
  const counts = recent.read();
  expect(counts.length).toBeLessThanOrEqual(101);
  expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(1000);
});
