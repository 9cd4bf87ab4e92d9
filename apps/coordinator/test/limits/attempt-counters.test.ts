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
    const counted = await countInAll(both);
    expect([counted.isAdmitted, account.count('ada'), address.count('192.0.2.1')]).toEqual([true, 60, 60]);
  });

  it('is refunded in all of them, once', async () => {
    const [account, address] = [limit(2), limit(2)];
    const counted = await countInAll([
      [account, 'ada'],
      [address, '192.0.2.1'],
    ]);
    account.count('ada');
    if (counted.isAdmitted) for (let time = 0; time < 2; time++) await counted.refund();
    expect([account.count('ada'), account.count('ada')]).toEqual([null, 60]);
    expect([address.count('192.0.2.1'), address.count('192.0.2.1')]).toEqual([null, null]);
  });

  it('names the counter that refuses', async () => {
    const [account, address] = [limit(1), limit(0)];
    const refused = await countInAll([
      [account, 'ada'],
      [address, '192.0.2.1'],
    ]);
    expect(refused).toEqual({ isAdmitted: false, refusedBy: address, retryAfter: 60 });
    expect(!refused.isAdmitted && refused.refusedBy).toBe(address);
  });

  it.each([
    ['a later one refuses', limit(0), 60],
    ['a later one fails', broken, 'unavailable'],
  ])('counts in none where %s', async (_what, last, expected) => {
    const account = limit(1);
    const outcome = await countInAll([
      [account, 'ada'],
      [last, '192.0.2.1'],
    ]).then(
      (counted) => (counted.isAdmitted ? null : counted.retryAfter),
      (error: Error) => error.message,
    );
    expect(outcome).toBe(expected);
    expect(account.count('ada')).toBeNull();
  });
});
