/** Maximum time of an answer that has begun: bounded for every provider, but generous to slow ones. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { expectedTokenMs, StallBudget } from '../../../src/inference/attempt/stall-budget.js';
import { errorOf, type Harness, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

const HOUR = 3_600_000;

it('every answer ends within a time given by its length, for any reports of the provider', () => {
  const step = fc.record({
    ms: fc.integer({ min: 0, max: 300_000 }),
    bytes: fc.integer({ min: 0, max: 10_000 }),
    working: fc.boolean(),
  });
  const rules = { maxMs: 120_000, tokenMs: 20, maxTokens: 1000 };
  fc.assert(
    fc.property(fc.array(step, { minLength: 1 }), (steps) => {
      const stallBudget = new StallBudget(rules);
      let spent = 0;
      for (let index = 0; !stallBudget.isExhausted; index++) {
        const { ms, bytes, working } = steps[index % steps.length] as (typeof steps)[number];
        // Time must pass, or the loop would never end.
        stallBudget.spend(ms + 1);
        if (!stallBudget.isExhausted) spent += ms + 1;
        stallBudget.received(bytes);
        if (working) stallBudget.reportedProgress();
      }
      expect(spent).toBeLessThanOrEqual(120_000 + 1000 * 1000);
    }),
    { numRuns: 30 },
  );
});

it('a provider that was measured to be slow has proportionally more time', () => {
  const endOf = (tokenMs: number): number => {
    const stallBudget = new StallBudget({ maxMs: 120_000, tokenMs, maxTokens: 8192 });
    let ms = 0;
    for (; !stallBudget.isExhausted; ms += 60_000) {
      stallBudget.spend(60_000);
      stallBudget.received(64);
    }
    return ms;
  };
  expect(endOf(20)).toBeLessThanOrEqual(3 * 60_000);
  expect(endOf(10_000)).toBeGreaterThan(24 * HOUR);
});

it('the expected time per token excludes the time to the first one', () => {
  const estimate = { firstTokenMs: 500, completionMs: 4500, costMs: 0 };
  expect(expectedTokenMs(estimate, { promptTokens: 10, completionTokens: 400 })).toBe(10);
  expect(expectedTokenMs({ ...estimate, completionMs: 400 }, { promptTokens: 10, completionTokens: 0 })).toBe(0);
});

describe('a trickling provider', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  const trickle = async (job: ScriptedJob): Promise<void> => {
    job.accept();
    job.push(Buffer.from(`${job.context.stream ? 'data: ' : ''}{"text":"`));
    while (!job.cancelled.aborted) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      if (!job.cancelled.aborted) job.push(Buffer.from(' '));
    }
  };

  for (const stream of [true, false]) {
    it(`is stopped, for a logged and counted reason, and not paid${stream ? ', in a stream' : ''}`, async () => {
      harness = await startHarness({ jobTimings: { stallMs: 200, overallMs: 1 } });
      const provider = await harness.provider({ onJob: trickle });
      const before = await harness.money();
      const response = await harness.chat({ stream });
      if (stream) {
        const text = await response.text();
        expect([response.status, text.includes('provider_timeout'), text.includes('[DONE]')]).toEqual([200, true, false]);
      } else expect([response.status, (await errorOf(response)).code]).toEqual([504, 'provider_timeout']);
      expect(harness.jobLines()).toMatchObject([{ status: 'provider_timeout', reason: 'timeout_progress', provider: provider.providerId }]);
      const metrics = await (await harness.get('/metrics', harness.adminKey)).text();
      expect(metrics).toContain('inference_failed_attempts_total{reason="timeout_progress",retried="false"} 1');
      expect(await harness.money()).toEqual(before);
      await until(() => [...provider.jobs.values()].every((job) => job.cancelled.aborted));
    });
  }
});
