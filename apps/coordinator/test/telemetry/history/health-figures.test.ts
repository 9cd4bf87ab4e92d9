/** Health history without a database: sums, quantiles, points of several coordinators, and a recorder whose storage fails. */
import { describe, expect, it } from 'vitest';
import { type HealthFigures, mergeFigures, NO_FIGURES, quantileOf } from '../../../src/telemetry/history/health-figures.js';
import { healthPoints } from '../../../src/telemetry/history/health-points.js';
import { HealthRecorder } from '../../../src/telemetry/history/health-recorder.js';
import { JobCounts } from '../../../src/telemetry/history/job-counts.js';
import { Metrics } from '../../../src/telemetry/metrics.js';

const MINUTE_MS = 60_000;
const figures = (part: Partial<HealthFigures>): HealthFigures => ({ ...NO_FIGURES, samples: 1, ...part });
const sums = (part: Partial<HealthFigures['sums']>) => ({ ...NO_FIGURES.sums, ...part });

describe('figures', () => {
  it('add up, with the highest of highs and the latest ledger check', () => {
    const ledger = { at: 5, owed: 1, held: 2, fees: 3, requestedWithdrawals: 4, problems: 0 };
    const a = figures({ jobs: { delivered: 2 }, maxWaiting: 7, sums: sums({ slots: 4 }), ledger });
    const b = figures({
      jobs: { delivered: 1, no_provider: 3 },
      maxWaiting: 5,
      sums: sums({ slots: 6 }),
      ledger: { ...ledger, at: 4, fees: 9 },
    });
    const merged = { jobs: { delivered: 3, no_provider: 3 }, samples: 2, maxWaiting: 7, sums: { slots: 10 }, ledger };
    expect(mergeFigures(a, b)).toMatchObject(merged);
    expect(mergeFigures(b, a)).toMatchObject(merged);
    expect(mergeFigures(NO_FIGURES, a)).toEqual(a);
  });

  it('have quantiles within the bounds of their buckets', () => {
    const seconds = { '+Inf': 1, '10': 1, '1': 6, '0.5': 2 };
    expect(quantileOf(seconds, 0)).toBe(0);
    expect(quantileOf(seconds, 0.5)).toBeCloseTo(0.75);
    expect(quantileOf(seconds, 0.85)).toBeCloseTo(5.5);
    expect(quantileOf(seconds, 1)).toBe(10);
    expect(quantileOf({}, 0.5)).toBeNull();
  });
});

describe('points', () => {
  it('sum the averages of coordinators, and stay empty where nothing was recorded', () => {
    const [empty, point] = healthPoints(
      [
        {
          slotAt: MINUTE_MS,
          figures: figures({ samples: 4, sums: sums({ routable: 8 }), providers: { hardware: 8 }, maxLoopLagMs: 9, maxWaiting: 2 }),
        },
        {
          slotAt: MINUTE_MS,
          figures: figures({
            samples: 2,
            sums: sums({ routable: 6 }),
            providers: { hardware: 2, self_signed: 4 },
            maxLoopLagMs: 4,
            maxWaiting: 3,
            jobs: { delivered: 5, client_gone: 1, invalid_request: 2, refused: 1, no_provider: 3, of_a_later_version: 1 },
          }),
        },
      ],
      { from: 0, to: 2 * MINUTE_MS, slotMs: MINUTE_MS },
    );
    expect(empty).toMatchObject({ at: '1970-01-01T00:00:00.000Z', coordinators: 0, latency_ms: null, ledger: null, providers: [] });
    expect(point).toMatchObject({
      coordinators: 2,
      routable: 5,
      requests: { delivered: 5, cancelled: 1, refused: 3, failed: 4 },
      failures: [
        { code: 'no_provider', count: 3 },
        { code: 'of_a_later_version', count: 1 },
      ],
      queue: { max: 5 },
      providers: [
        { trust_level: 'hardware', average: 3 },
        { trust_level: 'self_signed', average: 2 },
      ],
      event_loop_lag_ms: 9,
    });
  });
});

describe('a recorder', () => {
  it('records the increase of the metrics, and retains minutes that could not be stored', async () => {
    let at = 10 * MINUTE_MS;
    let isDown = true;
    const stored: [number, HealthFigures][] = [];
    const errors: unknown[] = [];
    const metrics = new Metrics();
    const job = {
      endpoint: '/v1/chat/completions',
      isSealed: false,
      stream: true,
      cancelled: null,
      requestBytes: 1,
      responseBytes: 1,
    } as const;
    const end = (outcome: string, ms: number) => metrics.job({ ...job, outcome, ms, billed: null, times: null });
    const recorder = new HealthRecorder({
      counts: new JobCounts(metrics.registry),
      read: () => ({ sums: sums({ waiting: 3 }), providers: { hardware: 2 }, ledger: null }),
      store: async (minute, value) => {
        if (isDown) throw new Error('the database is away');
        stored.push([minute, value]);
      },
      now: () => at,
      onError: (error) => errors.push(error),
    });
    end('delivered', 700);
    end('delivered', 3_600_000);
    await recorder.sample();
    expect(errors).toEqual([]);
    at += MINUTE_MS;
    end('no_provider', 1);
    await recorder.sample();
    expect(errors).toHaveLength(1);
    isDown = false;
    await recorder.close();
    expect(stored.map(([minute]) => minute / MINUTE_MS)).toEqual([10, 11]);
    expect(stored[0]?.[1]).toMatchObject({
      samples: 1,
      jobs: { delivered: 2 },
      jobSeconds: { '1': 1, '+Inf': 1 },
      sums: { waiting: 3 },
      maxWaiting: 3,
    });
    expect(stored[1]?.[1]).toMatchObject({ samples: 2, jobs: { no_provider: 1 }, providers: { hardware: 4 } });
  });

  it('loses neither counts nor minutes when the gauges cannot be read', async () => {
    let at = 10 * MINUTE_MS;
    let isReadable = true;
    let jobs = 0;
    const stored: [number, HealthFigures['jobs']][] = [];
    const errors: unknown[] = [];
    const recorder = new HealthRecorder({
      counts: {
        sincePrevious: async () => {
          const delivered = jobs;
          jobs = 0;
          return { jobs: { delivered }, failedAttempts: {}, jobSeconds: {}, firstTokenSeconds: {} };
        },
      },
      read: () => {
        if (!isReadable) throw new Error('a gauge cannot be read');
        return { sums: sums({}), providers: {}, ledger: null };
      },
      store: async (minute, value) => stored.push([minute / MINUTE_MS, value.jobs]),
      now: () => at,
      onError: (error) => errors.push(error),
    });
    jobs = 1;
    await recorder.sample();
    isReadable = false;
    jobs = 2;
    at += MINUTE_MS;
    await recorder.sample();
    expect(errors).toHaveLength(1);
    expect(stored).toEqual([[10, { delivered: 1 }]]);
    isReadable = true;
    await recorder.sample();
    isReadable = false;
    await recorder.close();
    expect(stored.slice(1)).toEqual([[11, { delivered: 2 }]]);
  });

  it('leaves samples out while the database does not answer', async () => {
    let at = 10 * MINUTE_MS;
    let answer = (): void => {};
    let calls = 0;
    const recorder = new HealthRecorder({
      counts: new JobCounts(new Metrics().registry),
      read: () => ({ sums: sums({}), providers: {}, ledger: null }),
      store: async () => {
        calls++;
        await new Promise<void>((resolve) => (answer = resolve));
      },
      now: () => at,
      onError: () => {},
    });
    await recorder.sample();
    at += MINUTE_MS;
    const samples = [recorder.sample(), recorder.sample(), recorder.sample()];
    await expect.poll(() => calls).toBe(1);
    answer();
    await Promise.all(samples);
    expect(calls).toBe(1);
    const closed = recorder.close();
    await expect.poll(() => calls).toBe(2);
    answer();
    await closed;
  });
});
