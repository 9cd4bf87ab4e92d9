import { describe, expect, it } from 'vitest';
import { type AttemptCounter, countInAll } from '../../src/limits/attempt-counters.js';
import { AttemptLimit } from '../../src/routes/plugins/attempt-limit.js';

describe('an attempt that several counters limit', () => {
  const limit = (maxAttempts: number) => new AttemptLimit({ maxAttempts, windowMs: 60_000, now: () => 1_000_000 });
  const broken: AttemptCounter = { count: () => Promise.reject(new Error('unavailable')), refund: () => {} };

  it('counts in all of them', async () => {
    const [account, address] = [limit(1), limit(1)];
    const both = [
      [account, 'ada'],
      [address, '192.0.2.1'],
    ] as const;
    expect([await countInAll(both), account.count('ada'), address.count('192.0.2.1')]).toEqual([null, 60, 60]);
  });

  it.each([
    ['a later one refuses', limit(0), 60],
    ['a later one fails', broken, 'unavailable'],
  ])('counts in none where %s', async (_what, last, expected) => {
    const account = limit(1);
    const outcome = await countInAll([
      [account, 'ada'],
      [last, '192.0.2.1'],
    ]).catch((error: Error) => error.message);
    expect(outcome).toBe(expected);
    expect(account.count('ada')).toBeNull();
  });
});
