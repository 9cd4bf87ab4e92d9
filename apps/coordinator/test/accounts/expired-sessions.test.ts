import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Auth } from '../../src/accounts/auth.js';
import { startSessionCleanup } from '../../src/accounts/expired-sessions.js';

const HOUR_MS = 3_600_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('the shutdown waits for a run that outlasts its interval', async () => {
  const ends: (() => void)[] = [];
  const deleteMany = () => new Promise<void>((resolve) => ends.push(resolve));
  const auth = { $context: Promise.resolve({ adapter: { deleteMany } }) } as unknown as Auth;
  const stop = startSessionCleanup(auth, null, (error) => {
    throw error;
  });
  await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
  expect(ends).toHaveLength(1);
  let hasStopped = false;
  const stopped = stop().then(() => {
    hasStopped = true;
  });
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(hasStopped).toBe(false);
  // Sessions, then verifications.
  ends[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  ends[1]?.();
  await stopped;
});
