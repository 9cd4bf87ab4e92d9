import { expect, it } from 'vitest';
import { UsageRetentionJob } from '../../../src/billing/ledger/ledger-maintenance.js';
import { until } from '../../support/harness.js';

const DAY = 86_400_000;

function retention(prune: (before: number, signal: AbortSignal) => Promise<number>, everyMs = 1_000_000, days: number | null = 30) {
  const pruned: number[] = [];
  const errors: unknown[] = [];
  const job = new UsageRetentionJob({
    days,
    now: () => 100 * DAY,
    prune,
    everyMs,
    onPruned: (entries) => pruned.push(entries),
    onError: (error) => errors.push(error),
  });
  return { job, pruned, errors };
}

it('removes entries beyond the maximum age, at once and periodically', async () => {
  const asked: number[] = [];
  const { job, pruned } = retention(async (before) => {
    asked.push(before);
    return asked.length === 1 ? 7 : 0;
  }, 5);
  await until(() => asked.length >= 3);
  await job.close();
  expect(new Set(asked)).toEqual(new Set([70 * DAY]));
  // A run that deletes nothing is not reported.
  expect(pruned).toEqual([7]);
});

it('reports a failure and continues', async () => {
  let calls = 0;
  const { job, pruned, errors } = retention(async () => {
    calls++;
    if (calls === 1) throw new Error('the database is away');
    return 1;
  });
  await job.run();
  expect(errors).toEqual([new Error('the database is away')]);
  await job.run();
  expect(pruned).toEqual([1]);
  await job.close();
});

it('retains every entry without a maximum age', async () => {
  const asked: number[] = [];
  const { job } = retention(
    async (before) => {
      asked.push(before);
      return 0;
    },
    1_000_000,
    null,
  );
  await job.close();
  expect(asked).toEqual([0]);
});

it('runs once at a time, and stops at closing', async () => {
  let max = 0;
  let running = 0;
  const { job, errors } = retention(async (_before, signal) => {
    max = Math.max(max, ++running);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    running--;
    signal.throwIfAborted();
    return 0;
  }, 1);
  void job.run();
  await new Promise((resolve) => setTimeout(resolve, 20));
  await job.close();
  expect([running, max, errors]).toEqual([0, 1, []]);
});
