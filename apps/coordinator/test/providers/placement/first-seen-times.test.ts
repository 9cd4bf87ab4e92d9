import { expect, it } from 'vitest';
import { FirstSeenTimes } from '../../../src/providers/placement/first-seen-times.js';

it('invented names do not accumulate, and offered models keep their first time', () => {
  const offered = new Set(['old']);
  const seen = new FirstSeenTimes((model) => offered.has(model));
  seen.record('old', 1);
  for (let index = 0; index < 100_000; index++) seen.record(`made-up-${index}`, 2);
  expect(seen.size).toBeLessThanOrEqual(10_001);
  seen.record('old', 3);
  expect(seen.at('old')).toBe(1);
  // More names than would otherwise be stored.
  for (let index = 0; index < 30_000; index++) {
    offered.add(`model-${index}`);
    seen.record(`model-${index}`, 4);
  }
  expect([seen.at('model-0'), seen.at('model-29999')]).toEqual([4, 4]);
});
