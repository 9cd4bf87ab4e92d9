/** What a chart shows, independent of what draws it. */
interface ChartSeries {
  readonly label: string;
  readonly values: readonly number[];
}

interface ChartData {
  /** Along the bottom: one for each value. */
  readonly labels: readonly string[];
  readonly series: readonly ChartSeries[];
}

export interface ChartProps extends ChartData {
  /** What the chart shows, in one sentence for those who do not see it. */
  readonly title: string;
  readonly kind: 'line' | 'bar';
  /** Bars or areas of all series on top of each other. */
  readonly stacked?: boolean;
  /** How values are written in hints, at the axis and in the table. */
  readonly format?: (value: number) => string;
  /** Heading of the table's first column, such as `Day`. */
  readonly labelHeading?: string;
  /** CSS length. */
  readonly height?: string;
}
