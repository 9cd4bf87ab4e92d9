/** Series of the health charts: gaps, rare error codes, time labels. */
import type { AdminHealthPoint } from '@inference/formats';
import { expect, test } from 'vitest';
import { hasData, healthCharts, timeLabels } from '../../src/pages/admin/system/health-series.js';

const EMPTY: AdminHealthPoint = {
  at: '2026-01-05T10:00:00.000Z',
  coordinators: 0,
  requests: { delivered: 0, cancelled: 0, refused: 0, failed: 0 },
  failures: [],
  latency_ms: null,
  first_token_ms: null,
  queue: { average: 0, max: 0 },
  running_jobs: 0,
  providers: [],
  routable: 0,
  slots: 0,
  used_slots: 0,
  event_loop_lag_ms: 0,
  ledger: null,
};
const codes = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
const history = {
  range: '1h' as const,
  resolution: '1m' as const,
  data: [
    EMPTY,
    {
      ...EMPTY,
      at: '2026-01-05T10:01:00.000Z',
      coordinators: 2,
      requests: { delivered: 7, cancelled: 0, refused: 0, failed: 28 },
      failures: codes.map((code, index) => ({ code, count: 7 - index })),
      providers: [{ trust_level: 'hardware', average: 2.5 }],
    },
  ],
};
const seriesOf = (title: string) => healthCharts(history).find((chart) => chart.title === title)?.series ?? [];

test('an interval without coordinators is a gap, and no value is a gap', () => {
  expect(hasData(history)).toBe(true);
  expect(hasData({ ...history, data: [EMPTY] })).toBe(false);
  expect(seriesOf('Requests')[0]).toEqual({ label: 'Delivered', values: [null, 7], colour: 1 });
  expect(seriesOf('Latency')[0]?.values).toEqual([null, null]);
  expect(seriesOf('Machines')).toMatchObject([
    { label: 'Hardware', values: [null, 2.5] },
    { label: 'Eligible', values: [null, 0] },
  ]);
});

test('five error codes have a series, the others share one', () => {
  expect(seriesOf('Failures by reason').map(({ label, values }) => [label, values[1]])).toEqual([
    ['a', 7],
    ['b', 6],
    ['c', 5],
    ['d', 4],
    ['e', 3],
    ['Other errors', 3],
  ]);
});

test('labels are times, with the day in a week', () => {
  expect(timeLabels(history, 'UTC')).toEqual(['10:00', '10:01']);
  expect(timeLabels({ ...history, range: '7d' }, 'UTC')).toEqual(['Jan 5, 10:00', 'Jan 5, 10:01']);
});
