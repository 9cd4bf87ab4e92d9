/** Draws a chart on a canvas in the colours of the theme. Imported lazily, only by `chart.tsx`. */
import {
  BarController,
  BarElement,
  Chart as Canvas,
  CategoryScale,
  type ChartConfiguration,
  Filler,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  Tooltip,
} from 'chart.js';
import { useEffect, useRef } from 'react';
import { formatShort } from '../display/figures.js';
import { useTheme } from '../theme/theme.js';
import type { ChartProps } from './chart.js';
import { COLOUR_COUNT } from './series-colours.js';

Canvas.register(BarController, BarElement, CategoryScale, Filler, LinearScale, LineController, LineElement, PointElement, Tooltip);

export function ChartDrawing(props: ChartProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const chart = useRef<Canvas | null>(null);
  const { theme } = useTheme();
  const { kind } = props;
  // A new kind or theme recreates the chart. New values only update the chart.
  // biome-ignore lint/correctness/useExhaustiveDependencies: colours are read from the DOM, which follows the theme
  useEffect(() => {
    if (canvas.current === null) return;
    const instance = new Canvas(canvas.current, { type: kind, data: { datasets: [] } });
    chart.current = instance;
    return () => {
      chart.current = null;
      instance.destroy();
    };
  }, [kind, theme]);
  useEffect(() => {
    const instance = chart.current;
    if (instance === null || canvas.current === null) return;
    const { data, options } = configuration(props, canvas.current);
    instance.data = data;
    if (options !== undefined) instance.options = options;
    instance.update('none');
  });
  return (
    <div className="chart-canvas">
      <canvas ref={canvas} role="img" aria-label={`${props.title} ${summary(props)}`} />
    </div>
  );
}

/** Text alternative: range, maximum and last value of each series. */
function summary({ series, labels, format = formatShort }: ChartProps): string {
  const first = labels[0] ?? '';
  const last = labels.at(-1) ?? '';
  const lastOf = (values: ChartProps['series'][number]['values']): string => {
    const value = values.at(-1) ?? null;
    return value === null ? 'unknown' : format(value);
  };
  const parts = series.map(
    ({ label, values }) => `${label}: highest ${format(Math.max(0, ...values.map((value) => value ?? 0)))}, last ${lastOf(values)}.`,
  );
  return `From ${first} to ${last}. ${parts.join(' ')}`;
}

function configuration(props: ChartProps, canvas: HTMLCanvasElement): ChartConfiguration {
  const { labels, series, kind, stacked = false, format = formatShort } = props;
  const style = getComputedStyle(canvas);
  const colour = coloursOf(canvas);
  const font = { family: style.fontFamily, size: 12 };
  return {
    type: kind,
    data: {
      labels: [...labels],
      datasets: series.map(({ label, values, colour: own }, index) => {
        const ink = colour(`--chart-${own ?? (index % COLOUR_COUNT) + 1}`);
        return {
          label,
          data: [...values],
          borderColor: ink,
          backgroundColor: kind === 'bar' ? ink : `color-mix(in srgb, ${ink} 16%, transparent)`,
          fill: kind === 'line' && (stacked || series.length === 1),
          borderWidth: kind === 'bar' ? 0 : 2,
          borderRadius: kind === 'bar' ? 2 : 0,
          maxBarThickness: 42,
          tension: 0.25,
          pointRadius: 0,
          pointHitRadius: 12,
        };
      }),
    },
    options: {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      interaction: { mode: 'index', intersect: false },
      font,
      plugins: {
        tooltip: {
          backgroundColor: colour('--text'),
          titleColor: colour('--surface'),
          bodyColor: colour('--surface'),
          padding: 10,
          cornerRadius: 8,
          boxPadding: 4,
          callbacks: { label: ({ dataset, parsed }) => ` ${dataset.label ?? ''}: ${format(parsed.y ?? 0)}` },
        },
      },
      scales: {
        x: {
          stacked,
          grid: { display: false },
          border: { color: colour('--line') },
          ticks: { color: colour('--text-2'), font, maxRotation: 0, autoSkipPadding: 18 },
        },
        y: {
          stacked,
          beginAtZero: true,
          suggestedMax: 1,
          border: { display: false },
          grid: { color: colour('--line') },
          ticks: { color: colour('--text-2'), font, maxTicksLimit: 5, precision: 0, callback: (value) => format(Number(value)) },
        },
      },
    },
  };
}

/** Resolves CSS colours to computed values: a canvas does not understand `light-dark()`. */
function coloursOf(canvas: HTMLCanvasElement): (name: string) => string {
  const probe = document.createElement('span');
  probe.hidden = true;
  (canvas.parentElement ?? document.body).append(probe);
  const colours = new Map<string, string>();
  for (const name of [
    '--text',
    '--text-2',
    '--surface',
    '--line',
    ...Array.from({ length: COLOUR_COUNT }, (_, index) => `--chart-${index + 1}`),
  ]) {
    probe.style.color = `var(${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  probe.remove();
  return (name) => colours.get(name) ?? 'currentcolor';
}
