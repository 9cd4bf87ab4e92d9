/** Placement decisions end even if the clock jumps: an endless one would block the whole coordinator. */
import { afterEach, describe, expect, it } from 'vitest';
import { anyone } from '../../../../../packages/scheduler/test/providers.js';
import { type Harness, MODEL, startHarness, until } from '../../support/harness.js';

describe('a running coordinator', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  it('answers while its clock goes back and forth around the end of the trust in a machine', async () => {
    let reads = 0;
    let swing: readonly number[] | null = null;
    const now = (): number => {
      if (swing === null) return Date.now();
      if (++reads > 100_000) throw new Error('the choice does not end');
      return swing[reads % 2] as number;
    };
    harness = await startHarness({ now, jobTimings: { queueMs: 50 } });
    const provider = await harness.provider();
    expect((await harness.chat()).status).toBe(200);
    await until(() => harness.jobLines().length === 1);
    const end = harness.app.providers.snapshot(provider.providerId)?.trust.validUntil ?? 0;
    expect(end).toBeGreaterThan(Date.now());
    for (const readings of [
      [end + 2, end - 3],
      [end - 3, end + 2],
      [end, end - 1],
    ]) {
      reads = 0;
      swing = readings;
      const decision = harness.app.providers.placement.choose(MODEL, anyone);
      expect(['placed', 'none', 'busy']).toContain(decision.kind);
      expect(reads).toBeLessThan(100);
    }
    // Once the clock is correct, the provider's next message lists it again.
    swing = null;
    provider.send({ type: 'load', active_jobs: 1 });
    provider.send({ type: 'load', active_jobs: 0, thermal: 'serious' });
    await until(async () => (await harness.chat()).status === 200);
  });
});
