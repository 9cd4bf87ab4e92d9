import { describe, expect, it } from 'vitest';
import { CoalescingRunner } from '../src/coalescing-runner.js';

/** Runner whose runs end only when the test calls `ends`, in the order of the runs. */
function heldRunner() {
  const ends: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  const runner = new CoalescingRunner(() => new Promise<void>((resolve, reject) => ends.push({ resolve, reject })));
  return { runner, ends };
}

describe('a coalescing runner', () => {
  it('shares one run between the calls of a turn', async () => {
    const { runner, ends } = heldRunner();
    const calls = [runner.run(), runner.run(), runner.run()];
    expect(new Set(calls).size).toBe(1);
    await Promise.resolve();
    expect([ends.length, runner.isRunning]).toEqual([1, true]);
    ends[0]?.resolve();
    await Promise.all(calls);
    expect([ends.length, runner.isRunning]).toEqual([1, false]);
  });

  it('runs once more after the current run, however often it was called during that run', async () => {
    const { runner, ends } = heldRunner();
    const first = runner.run();
    await Promise.resolve();
    const later = Array.from({ length: 100 }, () => runner.run());
    expect(ends).toHaveLength(1);
    ends[0]?.resolve();
    await first;
    await Promise.resolve();
    expect(ends).toHaveLength(2);
    ends[1]?.resolve();
    await Promise.all(later);
    await runner.whenIdle();
    expect(ends).toHaveLength(2);
  });

  it('rejects for the calls of a failed run only', async () => {
    const { runner, ends } = heldRunner();
    const failed = runner.run();
    await Promise.resolve();
    const next = runner.run();
    ends[0]?.reject(new Error('broken'));
    await expect(failed).rejects.toThrow('broken');
    await Promise.resolve();
    ends[1]?.resolve();
    await next;
  });

  it('continues after a task that throws before it returns a promise', async () => {
    let runCount = 0;
    const runner = new CoalescingRunner(() => {
      if (++runCount === 1) throw new Error('no connection');
      return Promise.resolve();
    });
    await expect(runner.run()).rejects.toThrow('no connection');
    expect(runner.isRunning).toBe(false);
    await runner.run();
    expect(runCount).toBe(2);
  });

  it('is idle only after the running and the next run, also if they fail', async () => {
    const { runner, ends } = heldRunner();
    await runner.whenIdle();
    const runs = [runner.run()];
    await Promise.resolve();
    runs.push(runner.run());
    const outcomes = Promise.allSettled(runs);
    let isIdle = false;
    const idle = runner.whenIdle().then(() => {
      isIdle = true;
    });
    ends[0]?.reject(new Error('broken'));
    await new Promise(setImmediate);
    expect(isIdle).toBe(false);
    ends[1]?.reject(new Error('broken'));
    await idle;
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});
