import { describe, expect, it } from 'vitest';
import { eachDay, eachHour, lastDays } from '../../src/features/account/utc-days.js';
import { filterQuery, readFilter, withFilter } from '../../src/pages/client/usage-filter.js';
import { dailyChart, hourlyChart, MAX_SERIES, modelsUsed, OTHERS, usageTotals, usedDays } from '../../src/pages/client/usage-series.js';
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

  it('leave the other choices of the page as they are', () => {
    const filter = { from: '2026-01-01', to: '2026-02-01', model: 'b', key: null };
    expect(String(withFilter('?key=playground&sort=cost&model=a&list=failed', filter))).toBe(
      'sort=cost&list=failed&from=2026-01-01&to=2026-02-01&model=b',
    );
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
  it('has a value for every day between the first and the last data, highest cost first', () => {
    const rows = [row('2026-01-02', 'a', 1), row('2026-01-04', 'a', 2), row('2026-01-04', 'b', 9)];
    expect(dailyChart(rows, 'cost')).toEqual({
      labels: ['Jan 2', 'Jan 3', 'Jan 4'],
      series: [
        { name: 'b', values: [0, 0, 900], colour: expect.any(Number) },
        { name: 'a', values: [100, 0, 200], colour: expect.any(Number) },
      ],
    });
    expect(dailyChart(rows, 'tokens').series[1]).toMatchObject({ name: 'a', values: [11, 0, 22] });
    expect(dailyChart(rows, 'images')).toEqual({ labels: [], series: [] });
    expect(usageTotals(rows)).toEqual({ requests: 12, tokens: 132, images: 0, costMicroUsd: 1200 });
    expect(modelsUsed(rows)).toEqual(['a', 'b']);
    expect(usedDays(rows)).toEqual({ from: '2026-01-02', to: '2026-01-04' });
    expect(usedDays([])).toBeNull();
  });

  it('reaches from the first to the last hour with data, over midnight', () => {
    const { day: _, ...usage } = row('', 'a', 3);
    const rows = [
      { ...usage, hour: '2026-01-31T23:00:00.000Z' },
      { ...usage, hour: '2026-02-01T01:00:00.000Z', model: 'b' },
    ];
    const { labels, series } = hourlyChart(rows, 'requests');
    expect(labels).toEqual(['Jan 31, 23:00', 'Feb 1, 00:00', 'Feb 1, 01:00']);
    expect(series.map(({ name, values }) => [name, values])).toEqual([
      ['a', [3, 0, 0]],
      ['b', [0, 0, 3]],
    ]);
    const [hour = ''] = eachHour('2026-01-31T23:00:00.000Z', '2026-01-31T23:00:00.000Z');
    expect(hour).toBe('2026-01-31T23:00:00.000Z');
    const colours = dailyChart([row('2026-01-31', 'a', 1), row('2026-01-31', 'b', 1)], 'requests').series;
    expect(series.map(({ colour }) => colour)).toEqual(colours.map(({ colour }) => colour));
  });

  it('combines small models and preserves the sum', () => {
    const data = Array.from({ length: 10 }, (_, index) => row('2026-01-01', `model-${index}`, index + 1));
    const { series } = dailyChart(data, 'requests');
    expect(series).toHaveLength(MAX_SERIES);
    expect(series.at(-1)).toEqual({ name: OTHERS, values: [1 + 2 + 3 + 4 + 5], colour: OTHERS_COLOUR });
    expect(new Set(series.map(({ colour }) => colour)).size).toBe(MAX_SERIES);
    expect(series.flatMap(({ values }) => values).reduce((sum, value) => sum + value, 0)).toBe(55);
  });

  it('gives six models six colours', () => {
    const data = Array.from({ length: MAX_SERIES }, (_, index) => row('2026-01-01', `model-${index}`, index + 1));
    const { series } = dailyChart(data, 'requests');
    expect(new Set(series.map(({ colour }) => colour)).size).toBe(MAX_SERIES);
  });

  it('gives a model the same colour for every measure and filter', () => {
    const cheap = { ...row('2026-01-01', 'cheap', 50), cost_micro_usd: 1 };
    const dear = { ...row('2026-01-01', 'dear', 2), cost_micro_usd: 900 };
    const rows = [cheap, dear];
    const colours = (chart: ReturnType<typeof dailyChart>) => Object.fromEntries(chart.series.map(({ name, colour }) => [name, colour]));
    const [byCost, byRequests] = [dailyChart(rows, 'cost'), dailyChart(rows, 'requests')];
    expect(byCost.series.map(({ name }) => name)).toEqual(['dear', 'cheap']);
    expect(byRequests.series.map(({ name }) => name)).toEqual(['cheap', 'dear']);
    expect(colours(byRequests)).toEqual(colours(byCost));
    const filtered = dailyChart([cheap], 'cost', ['cheap', 'dear']);
    expect(colours(filtered)).toEqual({ cheap: colours(byCost).cheap });
  });
});
