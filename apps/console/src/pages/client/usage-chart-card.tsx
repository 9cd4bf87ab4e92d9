/** Usage chart with a choice of the measure. */
import type { ConsoleUsageDays } from '@inference/formats';
import { useState } from 'react';
import { shortDay } from '../../features/account/utc-days.js';
import { Chart } from '../../ui/chart/chart.js';
import { Card } from '../../ui/display/card.js';
import { formatUsd } from '../../ui/display/money.js';
import { formatShort } from '../../ui/display/number.js';
import { EmptyState } from '../../ui/feedback/empty-state.js';
import { Skeleton } from '../../ui/feedback/skeleton.js';
import { Segmented } from '../../ui/forms/segmented.js';
import { type Measure, usageChart } from './usage-series.js';

const MEASURES: readonly { readonly value: Measure; readonly label: string }[] = [
  { value: 'cost', label: 'Cost' },
  { value: 'requests', label: 'Requests' },
  { value: 'tokens', label: 'Tokens' },
  { value: 'images', label: 'Images' },
];

export function UsageChartCard({ usage }: { readonly usage: ConsoleUsageDays | undefined }) {
  const [measure, setMeasure] = useState<Measure>('cost');
  const chart = usage === undefined ? null : usageChart(usage, measure);
  return (
    <Card title="By day and model" actions={<Segmented<Measure> label="Measure" value={measure} options={MEASURES} onValue={setMeasure} />}>
      <div className="usage-chart">
        {chart === null ? (
          <Skeleton height="100%" />
        ) : chart.series.length === 0 ? (
          <EmptyState title="No data">No usage of this kind in the selected range.</EmptyState>
        ) : (
          <Chart
            title={`Usage by day and model: ${measure}.`}
            kind="bar"
            stacked
            labels={chart.days.map(shortDay)}
            series={chart.series.map(({ name, values }) => ({ label: name, values }))}
            // Axis ticks may lie between two micro-USD.
            format={measure === 'cost' ? (value) => formatUsd(Math.round(value)) : formatShort}
            labelHeading="Day"
            height="15rem"
          />
        )}
      </div>
    </Card>
  );
}
