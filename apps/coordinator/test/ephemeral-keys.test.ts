/** Key pairs made ahead: each is had once, whether it waited or was made on the spot. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { EphemeralKeys } from '../src/inference/ephemeral-keys.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

it('no pair is handed out twice, taken from those made ahead or beyond them', () => {
  const keys = new EphemeralKeys();
  vi.advanceTimersByTime(100);
  const publicKeys = new Set<string>();
  for (let job = 0; job < 60; job++) {
    publicKeys.add(Buffer.from(keys.take().publicKey).toString('hex'));
    if (job % 3 === 0) vi.advanceTimersByTime(1);
  }
  expect(publicKeys.size).toBe(60);
  keys.close();
});

it('makes a bounded number ahead, and none once it is closed', () => {
  const keys = new EphemeralKeys();
  let made = 0;
  while (vi.getTimerCount() > 0 && made < 1000) {
    vi.advanceTimersToNextTimer();
    made++;
  }
  expect(made).toBe(16);
  keys.take();
  expect(vi.getTimerCount()).toBe(1);
  keys.close();
  expect(vi.getTimerCount()).toBe(0);
  const [one, other] = [keys.take(), keys.take()];
  expect(one.publicKey).not.toEqual(other.publicKey);
  expect(vi.getTimerCount()).toBe(0);
});
