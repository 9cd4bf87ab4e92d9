/** Draws use as stacked columns, one per day. Loaded only where it is shown; a table says the same to screen readers. */
import { BarController, BarElement, CategoryScale, Chart, Legend, LinearScale, Tooltip } from 'chart.js';
import { useEffect, useRef } from 'react';
import { useTheme } from '../../app/theme.js';
import { formatUsd } from '../../ui/money.js';
import { formatCount, formatShort } from '../../ui/number.js';
import type { Measure, UsageChart } from './usage-series.js';

Chart.register(BarController, BarElement, CategoryScale, Legend, LinearScale, Tooltip);

const DAY = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
const SERIES_COLOURS = ['--chart-1', '--chart-2', '--chart-3', '--chart-4', '--chart-5', '--chart-6'];

export function UsageChartView({ chart, measure }: { readonly chart: UsageChart; readonly measure: Measure }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { theme } = useTheme();
  // biome-ignore lint/correctness/useExhaustiveDependencies: colours are read from the page, whose theme they follow
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const drawn = draw(element, chart, measure);
    return () => drawn.destroy();
  }, [chart, measure, theme]);
  return (
    <>
      <canvas ref={canvas} role="img" aria-label="Use by day and model, as columns. The table after it says the same." />
      <ChartTable chart={chart} measure={measure} />
    </>
  );
}

function draw(element: HTMLCanvasElement, chart: UsageChart, measure: Measure): Chart {
  const style = getComputedStyle(element);
  const colour = (name: string, otherwise: string): string => style.getPropertyValue(name).trim() || otherwise;
  const text = colour('--text-2', '#777');
  const grid = colour('--line', '#8884');
  const axis = { ticks: { color: text }, border: { display: false } };
  return new Chart(element, {
    type: 'bar',
    data: {
      labels: chart.days.map((day) => DAY.format(new Date(`${day}T00:00:00Z`))),
      datasets: chart.series.map(({ name, values }, index) => ({
        label: name,
        data: [...values],
        backgroundColor: colour(SERIES_COLOURS[index] ?? '--chart-1', '#4a72d8'),
        borderRadius: 3,
        maxBarThickness: 36,
      })),
    },
    options: {
      animation: false,
      maintainAspectRatio: false,
      interaction: { mode: 'index', intersect: false },
      scales: {
        x: { ...axis, stacked: true, grid: { display: false } },
        y: {
          ...axis,
          stacked: true,
          beginAtZero: true,
          grid: { color: grid },
          ticks: { color: text, maxTicksLimit: 5, callback: (value) => shown(Number(value), measure) },
        },
      },
      plugins: {
        legend: { position: 'bottom', labels: { color: text, usePointStyle: true, boxHeight: 7 } },
        tooltip: {
          filter: ({ raw }) => Number(raw) > 0,
          callbacks: { label: ({ dataset, raw }) => `${dataset.label}: ${exactly(Number(raw), measure)}` },
        },
      },
    },
  });
}

/** The chart in words, for those who do not see it. */
function ChartTable({ chart, measure }: { readonly chart: UsageChart; readonly measure: Measure }) {
  const used = chart.days.flatMap((day, index) => {
    const values = chart.series.map(({ values: all }) => all[index] ?? 0);
    return values.some((value) => value > 0) ? [{ day, values }] : [];
  });
  return (
    <table className="visually-hidden">
      <caption>Use by day and model</caption>
      <thead>
        <tr>
          <th scope="col">Day</th>
          {chart.series.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {used.map(({ day, values }) => (
          <tr key={day}>
            <th scope="row">{day}</th>
            {values.map((value, index) => (
              <td key={chart.series[index]?.name}>{exactly(value, measure)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function shown(value: number, measure: Measure): string {
  return measure === 'cost' ? formatUsd(Math.round(value)) : formatShort(value);
}

function exactly(value: number, measure: Measure): string {
  return measure === 'cost' ? formatUsd(value) : formatCount(value);
}
