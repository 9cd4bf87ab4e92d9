/**
 * `Chart`: line or bar chart. A button switches to a table of the values, for screen readers and for exact numbers. The drawing code is
 * loaded with the first chart.
 */
import { ChartColumn, Table2 } from 'lucide-react';
import { lazy, Suspense, useId, useState } from 'react';
import { formatCount } from '../display/figures.js';
import { Button } from '../forms/button.js';
import { COLOUR_COUNT } from './series-colours.js';

interface ChartSeries {
  readonly label: string;
  /** Null: nothing was measured. */
  readonly values: readonly (number | null)[];
  /** From 1 to `COLOUR_COUNT`; default: by position. */
  readonly colour?: number | undefined;
}

interface ChartData {
  /** X axis labels, one per value. */
  readonly labels: readonly string[];
  readonly series: readonly ChartSeries[];
}

export interface ChartProps extends ChartData {
  /** Sentence for screen readers that describes the chart. */
  readonly title: string;
  readonly kind: 'line' | 'bar';
  /** Stacks bars or areas of all series. */
  readonly stacked?: boolean;
  /** Formats values in tooltips, axis and table. */
  readonly format?: (value: number) => string;
  /** Heading of the table's first column, such as `Day`. */
  readonly labelHeading?: string;
  /** CSS length. */
  readonly height?: string;
}

const Drawing = lazy(() =>
  import('./chart-drawing.js').then(
    ({ ChartDrawing }) => ({ default: ChartDrawing }),
    // The module cannot be loaded offline, or after a deployment. The table still shows the numbers.
    () => ({ default: ChartTable }),
  ),
);

export function Chart(props: ChartProps) {
  const { title, series, height = '15rem' } = props;
  const [asTable, setAsTable] = useState(false);
  const id = useId();
  return (
    <figure className="chart" aria-labelledby={id}>
      <figcaption id={id} className="visually-hidden">
        {title}
      </figcaption>
      <div className="chart-head">
        <ul className="chart-legend">
          {series.map(({ label, colour }, index) => (
            <li key={label}>
              <span
                className="chart-swatch"
                style={{ background: `var(--chart-${colour ?? (index % COLOUR_COUNT) + 1})` }}
                aria-hidden="true"
              />
              {label}
            </li>
          ))}
        </ul>
        <Button
          size="small"
          kind="quiet"
          aria-pressed={asTable}
          icon={asTable ? <ChartColumn size={16} aria-hidden="true" /> : <Table2 size={16} aria-hidden="true" />}
          onClick={() => setAsTable(!asTable)}
        >
          {asTable ? 'Show as a chart' : 'Show as a table'}
        </Button>
      </div>
      <div className="chart-body" style={{ height }}>
        {asTable ? (
          <ChartTable {...props} />
        ) : (
          <Suspense fallback={<div className="chart-waiting" />}>
            <Drawing {...props} />
          </Suspense>
        )}
      </div>
    </figure>
  );
}

function formatValue(value: number | null | undefined, format: (value: number) => string): string {
  return value == null ? '—' : format(value);
}

function ChartTable({ title, labels, series, format = formatCount, labelHeading = 'Time' }: ChartProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (WCAG 2.1.1)
    <section className="chart-table" aria-label={title} tabIndex={0}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">{labelHeading}</th>
            {series.map(({ label }) => (
              <th key={label} scope="col" data-numeric="true">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {labels.map((label, index) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {series.map((one) => (
                <td key={one.label} data-numeric="true">
                  {formatValue(one.values[index], format)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
