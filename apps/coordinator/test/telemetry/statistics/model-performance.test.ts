/** Percentiles of response times per model: accuracy, time window, and the sum over coordinators. */
import { describe, expect, it } from 'vitest';
import {
  type AnswerTimes,
  ModelPerformance,
  networkPerformance,
  type PerformancePart,
} from '../../../src/telemetry/statistics/model-performance.js';

const HOUR_MS = 3_600_000;
const MODEL = 'test/model-1';

function underTest() {
  let time = 1_800_000_000_000;
  const performance = new ModelPerformance(() => time);
  const stream = (firstTokenMs: number, more: Partial<AnswerTimes> = {}): void =>
    performance.add({ model: MODEL, firstTokenMs, durationMs: firstTokenMs + 1000, decodedTokens: 50, ...more });
  return {
    performance,
    stream,
    pass: (ms: number): void => {
      time += ms;
    },
  };
}

const of = (...parts: PerformancePart[]) => networkPerformance(parts).get(MODEL);

/** Whether `value` is within 5 percent of `expected`. */
function expectNear(value: number | undefined, expected: number): void {
  expect(Math.abs((value ?? 0) / expected - 1)).toBeLessThan(0.05);
}

describe('the performance of a model', () => {
  it('is unknown before the first request', () => {
    expect(of(underTest().performance.part())).toBeUndefined();
  });

  it('has percentiles within 5 percent', () => {
    const { performance, stream } = underTest();
    for (let ms = 1; ms <= 1000; ms++) stream(ms * 3);
    const measured = of(performance.part());
    expect(measured?.first_token_ms?.requests).toBe(1000);
    expectNear(measured?.first_token_ms?.p5, 150);
    expectNear(measured?.first_token_ms?.p50, 1500);
    expectNear(measured?.first_token_ms?.p95, 2850);
    expectNear(measured?.tokens_per_second?.p50, 50);
    expect(measured?.duration_ms).toBeNull();
  });

  it('tells speeds below one token per second apart', () => {
    const { performance, stream } = underTest();
    stream(100, { durationMs: 100 + 100_000, decodedTokens: 40 });
    expectNear(of(performance.part())?.tokens_per_second?.p50, 0.4);
  });

  it('has no speed from short answers, and none where tokens preceded the stream', () => {
    const { performance, stream } = underTest();
    stream(10, { decodedTokens: 15 });
    stream(10, { decodedTokens: null });
    stream(10, { durationMs: 10 });
    expect(of(performance.part())).toMatchObject({ first_token_ms: { requests: 3 }, tokens_per_second: null });
  });

  it('counts responses without a stream by their duration alone', () => {
    const { performance } = underTest();
    performance.add({ model: MODEL, firstTokenMs: null, durationMs: 4000, decodedTokens: null });
    const measured = of(performance.part());
    expect(measured).toMatchObject({ first_token_ms: null, tokens_per_second: null });
    expectNear(measured?.duration_ms?.p50, 4000);
  });

  it('forgets requests older than a day, but no younger requests', () => {
    const { performance, stream, pass } = underTest();
    stream(10);
    pass(24 * HOUR_MS);
    stream(20);
    expect(of(performance.part())?.first_token_ms?.requests).toBe(2);
    pass(4 * HOUR_MS);
    expect(of(performance.part())?.first_token_ms?.requests).toBe(1);
    pass(28 * HOUR_MS);
    expect(of(performance.part())).toEqual({ first_token_ms: null, tokens_per_second: null, duration_ms: null });
  });

  it('is the one of all coordinators together', () => {
    const one = underTest();
    const other = underTest();
    for (let count = 0; count < 90; count++) one.stream(100);
    for (let count = 0; count < 10; count++) other.stream(5000);
    const measured = of(one.performance.part(), other.performance.part());
    expect(measured?.first_token_ms?.requests).toBe(100);
    expectNear(measured?.first_token_ms?.p50, 100);
    expectNear(measured?.first_token_ms?.p95, 5000);
  });

  it('is kept for a bounded number of models, by the newest requests', () => {
    const { performance, stream } = underTest();
    for (let index = 0; index < 600; index++) stream(10, { model: `model-${index}` });
    const models = performance.part().map(({ id }) => id);
    expect(models).toHaveLength(512);
    expect([models[0], models.at(-1)]).toEqual(['model-88', 'model-599']);
  });
});
