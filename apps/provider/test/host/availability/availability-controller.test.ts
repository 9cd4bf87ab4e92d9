/** From serving to away and back: what is done on the way, in which order, and what is told. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Availability } from '../../../src/host/availability/availability.js';
import { Attendance } from '../../../src/host/availability/availability-controller.js';

const SERVE: Availability = { state: 'serve', reasons: [], nextChangeAt: null };
const because = (state: 'leave' | 'refuse', code: 'paused' | 'too_hot' = 'paused', until: number | null = null): Availability => ({
  state,
  reasons: [{ code, text: `It is ${code}.`, until }],
  nextChangeAt: until,
});

class Bench {
  decision: Availability;
  readonly did: string[] = [];
  /** What runs ends. */
  finish: () => void = () => {};
  hurry: AbortSignal | null = null;
  decided = 0;
  readonly attendance: Attendance;

  constructor(first: Availability = SERVE, { lookMs = 60_000, now = Date.now } = {}) {
    this.decision = first;
    this.attendance = new Attendance({
      decide: () => {
        this.decided++;
        return this.decision;
      },
      leave: (hurry, stay) => {
        this.did.push('leave');
        this.hurry = hurry;
        return new Promise((resolve) => {
          this.finish = resolve;
          stay.addEventListener('abort', () => resolve(), { once: true });
        });
      },
      rest: async () => void this.did.push('rest'),
      resume: () => void this.did.push('resume'),
      onChange: ({ state, reasons }) => void this.did.push(`tell ${state} ${reasons[0]?.code ?? ''}`.trim()),
      lookMs,
      now,
    });
  }

  async review(decision: Availability): Promise<string[]> {
    this.decision = decision;
    this.attendance.review();
    await this.settle();
    return this.did.splice(0);
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

let bench: Bench;
afterEach(() => bench.attendance.close());

describe('a machine', () => {
  it('tells that it leaves before it refuses anything, rests when nothing runs, and comes back', async () => {
    bench = new Bench();
    expect(bench.attendance.status).toEqual({ state: 'serving', reasons: [], nextChangeAt: null });
    expect(await bench.review(because('leave'))).toEqual(['tell leaving paused', 'leave']);
    expect(bench.attendance.state).toBe('leaving');
    bench.finish();
    await bench.settle();
    expect([bench.did.splice(0), bench.attendance.state]).toEqual([['rest', 'tell away paused'], 'away']);
    expect(await bench.review(SERVE)).toEqual(['resume', 'tell serving']);
  });

  it('that begins while it should not serve is away, and nothing has to leave', async () => {
    bench = new Bench(because('refuse', 'too_hot'));
    expect([bench.attendance.state, bench.did]).toEqual(['away', []]);
    expect(await bench.review(SERVE)).toEqual(['resume', 'tell serving']);
  });

  it('stays when it is wanted again before all is done, and keeps its memory', async () => {
    bench = new Bench();
    await bench.review(because('leave'));
    expect(await bench.review(SERVE)).toEqual(['resume', 'tell serving']);
    bench.finish();
    await bench.settle();
    expect([bench.did, bench.attendance.state]).toEqual([[], 'serving']);
    expect(await bench.review(because('leave'))).toEqual(['tell leaving paused', 'leave']);
  });

  it('hurries when it becomes urgent on the way', async () => {
    bench = new Bench();
    await bench.review(because('leave'));
    expect(bench.hurry?.aborted).toBe(false);
    await bench.review(because('refuse', 'too_hot'));
    expect(bench.hurry?.aborted).toBe(true);
    bench = new Bench();
    await bench.review(because('refuse', 'too_hot'));
    expect(bench.hurry?.aborted).toBe(true);
  });

  it('tells what is new alone, and another reason or another end is new', async () => {
    bench = new Bench(because('leave'));
    expect(await bench.review(because('leave'))).toEqual([]);
    expect(await bench.review(because('leave', 'paused', 5))).toEqual(['tell away paused']);
    expect(await bench.review(because('leave', 'too_hot', 5))).toEqual(['tell away too_hot']);
  });

  it('looks again when something is expected to change, and now and then without a reason', async () => {
    bench = new Bench(because('leave', 'paused', Date.now() + 20));
    while (bench.decided < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    bench.attendance.close();
    bench = new Bench(SERVE, { lookMs: 10 });
    while (bench.decided < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('looks no sooner for a time that has passed, and the clock may be anywhere', async () => {
    // The clock was set back by a year: what is to change then is looked at before that, too.
    bench = new Bench(because('leave', 'paused', Date.now()), { lookMs: 10, now: () => Date.now() - 365 * 86_400_000 });
    while (bench.decided < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('does nothing more when it is closed', async () => {
    bench = new Bench(SERVE, { lookMs: 5 });
    bench.attendance.close();
    const { decided } = bench;
    expect(await bench.review(because('leave'))).toEqual([]);
    expect(bench.decided).toBe(decided);
  });
});
