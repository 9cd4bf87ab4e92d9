/** Transitions between serving, leaving and away: order of the steps and of the reports. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Availability } from '../../../src/host/availability/availability.js';
import { AvailabilityController } from '../../../src/host/availability/availability-controller.js';

const SERVE: Availability = { state: 'serve', reasons: [], nextChangeAt: null };
const because = (state: 'leave' | 'hand_back', code: 'paused' | 'too_hot' = 'paused', until: number | null = null): Availability => ({
  state,
  reasons: [{ code, text: `It is ${code}.`, until }],
  nextChangeAt: until,
});

class Bench {
  decision: Availability;
  readonly did: string[] = [];
  /** Ends the drain. */
  finish: () => void = () => {};
  force: AbortSignal | null = null;
  decided = 0;
  readonly controller: AvailabilityController;

  constructor(first: Availability = SERVE, { maxReviewIntervalMs = 60_000, now = Date.now } = {}) {
    this.decision = first;
    this.controller = new AvailabilityController({
      decide: () => {
        this.decided++;
        return this.decision;
      },
      drain: (force, cancel) => {
        this.did.push('drain');
        this.force = force;
        return new Promise((resolve) => {
          this.finish = resolve;
          cancel.addEventListener('abort', () => resolve(), { once: true });
        });
      },
      unload: async () => void this.did.push('unload'),
      resume: () => void this.did.push('resume'),
      onChange: ({ state, reasons }) => void this.did.push(`report ${state} ${reasons[0]?.code ?? ''}`.trim()),
      maxReviewIntervalMs,
      now,
    });
  }

  async review(decision: Availability): Promise<string[]> {
    this.decision = decision;
    this.controller.review();
    await this.settle();
    return this.did.splice(0);
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

let bench: Bench;
afterEach(() => bench.controller.close());

describe('a machine', () => {
  it('reports that it leaves before the drain, unloads when no job runs, and returns', async () => {
    bench = new Bench();
    expect(bench.controller.status).toEqual({ state: 'serving', reasons: [], nextChangeAt: null });
    expect(await bench.review(because('leave'))).toEqual(['report leaving paused', 'drain']);
    expect(bench.controller.state).toBe('leaving');
    bench.finish();
    await bench.settle();
    expect([bench.did.splice(0), bench.controller.state]).toEqual([['unload', 'report away paused'], 'away']);
    expect(await bench.review(SERVE)).toEqual(['resume', 'report serving']);
  });

  it('that starts while it must not serve is away, without a drain', async () => {
    bench = new Bench(because('hand_back', 'too_hot'));
    expect([bench.controller.state, bench.did]).toEqual(['away', []]);
    expect(await bench.review(SERVE)).toEqual(['resume', 'report serving']);
  });

  it('serves again without unloading if the reason ends during the drain', async () => {
    bench = new Bench();
    await bench.review(because('leave'));
    expect(await bench.review(SERVE)).toEqual(['resume', 'report serving']);
    bench.finish();
    await bench.settle();
    expect([bench.did, bench.controller.state]).toEqual([[], 'serving']);
    expect(await bench.review(because('leave'))).toEqual(['report leaving paused', 'drain']);
  });

  it('forces the drain when the reason becomes urgent', async () => {
    bench = new Bench();
    await bench.review(because('leave'));
    expect(bench.force?.aborted).toBe(false);
    await bench.review(because('hand_back', 'too_hot'));
    expect(bench.force?.aborted).toBe(true);
    bench = new Bench();
    await bench.review(because('hand_back', 'too_hot'));
    expect(bench.force?.aborted).toBe(true);
  });

  it('reports only changes: another reason or another end', async () => {
    bench = new Bench(because('leave'));
    expect(await bench.review(because('leave'))).toEqual([]);
    expect(await bench.review(because('leave', 'paused', 5))).toEqual(['report away paused']);
    expect(await bench.review(because('leave', 'too_hot', 5))).toEqual(['report away too_hot']);
  });

  it('reviews at the expected change, and periodically', async () => {
    bench = new Bench(because('leave', 'paused', Date.now() + 20));
    while (bench.decided < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    bench.controller.close();
    bench = new Bench(SERVE, { maxReviewIntervalMs: 10 });
    while (bench.decided < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('reviews periodically even if the clock jumps away from the expected change', async () => {
    // The clock was set back by a year; the expected change must not delay the review.
    bench = new Bench(because('leave', 'paused', Date.now()), { maxReviewIntervalMs: 10, now: () => Date.now() - 365 * 86_400_000 });
    while (bench.decided < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('does nothing after close', async () => {
    bench = new Bench(SERVE, { maxReviewIntervalMs: 5 });
    bench.controller.close();
    const { decided } = bench;
    expect(await bench.review(because('leave'))).toEqual([]);
    expect(bench.decided).toBe(decided);
  });
});
