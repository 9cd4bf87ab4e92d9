/** Data and options of a chart, independent of the drawing library. */
interface ChartSeries {
  readonly label: string;
  readonly values: readonly number[];
}

interface ChartData {
  /** X axis labels, one per value. */
  readonly labels: readonly string[];
  readonly series: readonly ChartSeries[];
}

export interface ChartProps extends ChartData {
  /** One sentence that describes the chart to screen readers. */
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
