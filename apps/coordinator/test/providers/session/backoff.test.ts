/** Providers that report full slots: each pause is longer than the previous one, and an answer ends it. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Backoff } from '../../../src/providers/session/backoff.js';
import { type Harness, startHarness, until } from '../../support/harness.js';

describe('a pause', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }));
  afterEach(() => void vi.useRealTimers());

  it('doubles each time, up to a bound, and is reset by an answer', () => {
    let over = 0;
    const holdOff = new Backoff({ firstMs: 1000, maxMs: 30_000 }, Date.now, () => over++);
    const lengths: number[] = [];
    for (let times = 0; times < 7; times++) {
      holdOff.start();
      // Reports during a pause change nothing.
      holdOff.start();
      const ms = holdOff.until - Date.now();
      lengths.push(ms);
      vi.advanceTimersByTime(ms);
      expect(over).toBe(times);
      vi.advanceTimersByTime(1);
      expect(over).toBe(times + 1);
    }
    expect(lengths).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    expect(holdOff.count).toBe(7);
    expect(holdOff.reset()).toBe(false);
    holdOff.start();
    expect([holdOff.until - Date.now(), holdOff.count]).toEqual([1000, 1]);
    expect([holdOff.reset(), holdOff.until]).toEqual([true, 0]);
    vi.advanceTimersByTime(60_000);
    expect(over).toBe(7);
  });

  it('ends when its time has passed, although the clock was set back', () => {
    let wasOver: boolean | null = null;
    const holdOff: Backoff = new Backoff({ firstMs: 1000, maxMs: 30_000 }, Date.now, () => {
      wasOver = holdOff.until <= Date.now();
    });
    holdOff.start();
    vi.setSystemTime(Date.now() - 3_600_000);
    vi.advanceTimersByTime(1001);
    expect(wasOver).toBe(true);
    holdOff.start();
    expect([holdOff.until - Date.now(), holdOff.count]).toEqual([2000, 2]);
    holdOff.stop();
  });

  it('stays bounded however often it begins', () => {
    const holdOff = new Backoff({ firstMs: 1000, maxMs: 30_000 }, Date.now, () => {});
    for (let times = 0; times < 5000; times++) {
      holdOff.start();
      vi.advanceTimersByTime(30_001);
    }
    holdOff.start();
    expect(holdOff.until - Date.now()).toBe(30_000);
    holdOff.stop();
  });
});

describe('a provider that is always full', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  it('is asked ever more rarely, sees so in its status, and counts as before after an answer', async () => {
    harness = await startHarness({ random: () => 0.5, providerTimings: { backoffMs: 20, maxBackoffMs: 40 } });
    let full = true;
    const provider = await harness.provider({ onJob: (job) => (full ? job.fail({ code: 'busy' }) : job.answerHonestly()) });
    const token = (await provider.next('registered')).token ?? '';
    const read = async () =>
      (await (await harness.get('/v1/providers/me', token)).json()) as {
        reputation: { refused_in_a_row: number; state: string };
        next_steps: { code: string; text: string }[];
      };
    expect((await read()).reputation.refused_in_a_row).toBe(0);
    expect((await harness.chat()).status).toBe(503);
    const reported = await read();
    expect(reported.reputation).toMatchObject({ state: 'well', refused_in_a_row: 3 });
    expect(reported.next_steps.find(({ code }) => code === 'refuses')?.text).toContain('3 requests in a row');
    full = false;
    expect((await harness.chat()).status).toBe(200);
    await until(async () => (await read()).reputation.refused_in_a_row === 0);
    expect((await read()).next_steps.map(({ code }) => code)).not.toContain('refuses');
  });
});
