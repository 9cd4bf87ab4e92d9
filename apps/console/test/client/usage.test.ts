import { describe, expect, it } from 'vitest';
import { eachDay, lastDays } from '../../src/features/account/utc-days.js';
import { filterQuery, readFilter } from '../../src/pages/client/usage-filter.js';
import { MAX_SERIES, modelsUsed, OTHERS, usageChart, usageTotals } from '../../src/pages/client/usage-series.js';
import { OTHERS_COLOUR } from '../../src/ui/chart/series-colours.js';

const NOW = Date.UTC(2026, 2, 1, 12);

describe('filters in the address', () => {
  it('defaults to the last thirty days', () => {
    expect(readFilter('', NOW)).toEqual({ from: '2026-01-31', to: '2026-03-01', model: null, key: null });
  });

  it('round-trips through the URL', () => {
    const filter = { from: '2026-01-01', to: '2026-02-01', model: 'a/b&c=d', key: 'playground' };
    expect(readFilter(`?${filterQuery(filter)}`, NOW)).toEqual(filter);
  });

  it.each(['from=yesterday', 'from=2026-02-30', 'from=2026-03-02', 'from=2020-01-01', 'to=x&from='])('corrects %s', (search) => {
    expect(readFilter(search, NOW)).toEqual({ from: '2026-01-31', to: '2026-03-01', model: null, key: null });
  });

  it('counts days', () => {
    expect(lastDays(7, NOW)).toEqual({ from: '2026-02-23', to: '2026-03-01' });
    expect(eachDay({ from: '2026-02-27', to: '2026-03-01' })).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
  });
});

const row = (day: string, model: string, requests: number) => ({
  day,
  model,
  requests,
  prompt_tokens: 10 * requests,
  completion_tokens: requests,
  images: 0,
  cost_micro_usd: 100 * requests,
});

describe('the chart of use', () => {
  it('has a value for every day, highest cost first', () => {
    const usage = {
      from: '2026-01-01',
      to: '2026-01-03',
      data: [row('2026-01-01', 'a', 1), row('2026-01-03', 'a', 2), row('2026-01-03', 'b', 9)],
    };
    expect(usageChart(usage, 'cost')).toEqual({
      days: ['2026-01-01', '2026-01-02', '2026-01-03'],
      series: [
        { name: 'b', values: [0, 0, 900], colour: expect.any(Number) },
        { name: 'a', values: [100, 0, 200], colour: expect.any(Number) },
      ],
    });
    expect(usageChart(usage, 'tokens').series[1]).toMatchObject({ name: 'a', values: [11, 0, 22] });
    expect(usageChart(usage, 'images').series).toEqual([]);
    expect(usageTotals(usage.data)).toEqual({ requests: 12, tokens: 132, images: 0, costMicroUsd: 1200 });
    expect(modelsUsed(usage.data)).toEqual(['a', 'b']);
  });

  it('combines small models and preserves the sum', () => {
    const data = Array.from({ length: 10 }, (_, index) => row('2026-01-01', `model-${index}`, index + 1));
    const { series } = usageChart({ from: '2026-01-01', to: '2026-01-01', data }, 'requests');
    expect(series).toHaveLength(MAX_SERIES);
    expect(series.at(-1)).toEqual({ name: OTHERS, values: [1 + 2 + 3 + 4 + 5], colour: OTHERS_COLOUR });
    expect(new Set(series.map(({ colour }) => colour)).size).toBe(MAX_SERIES);
    expect(series.flatMap(({ values }) => values).reduce((sum, value) => sum + value, 0)).toBe(55);
  });

  it('gives six models six colours', () => {
    const data = Array.from({ length: MAX_SERIES }, (_, index) => row('2026-01-01', `model-${index}`, index + 1));
    const { series } = usageChart({ from: '2026-01-01', to: '2026-01-01', data }, 'requests');
    expect(new Set(series.map(({ colour }) => colour)).size).toBe(MAX_SERIES);
  });

  it('gives a model the same colour for every measure and filter', () => {
    const cheap = { ...row('2026-01-01', 'cheap', 50), cost_micro_usd: 1 };
    const dear = { ...row('2026-01-01', 'dear', 2), cost_micro_usd: 900 };
    const usage = { from: '2026-01-01', to: '2026-01-01', data: [cheap, dear] };
    const colours = (chart: ReturnType<typeof usageChart>) => Object.fromEntries(chart.series.map(({ name, colour }) => [name, colour]));
    const [byCost, byRequests] = [usageChart(usage, 'cost'), usageChart(usage, 'requests')];
    expect(byCost.series.map(({ name }) => name)).toEqual(['dear', 'cheap']);
    expect(byRequests.series.map(({ name }) => name)).toEqual(['cheap', 'dear']);
    expect(colours(byRequests)).toEqual(colours(byCost));
    const filtered = usageChart({ ...usage, data: [cheap] }, 'cost', ['cheap', 'dear']);
    expect(colours(filtered)).toEqual({ cheap: colours(byCost).cheap });
  });
});
