/** The chart of use, with the choice of what it measures. The drawing itself is loaded when it is first shown. */
import type { ConsoleUsageDays } from '@inference/formats';
import { lazy, Suspense, useState } from 'react';
import { Card } from '../../ui/card.js';
import { EmptyState } from '../../ui/empty-state.js';
import { Segmented } from '../../ui/segmented.js';
import { Skeleton } from '../../ui/skeleton.js';
import { type Measure, usageChart } from './usage-series.js';

const UsageChartView = lazy(async () => ({ default: (await import('./usage-chart-view.js')).UsageChartView }));

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
          <EmptyState title="Nothing to draw">Nothing of this kind was used in the range.</EmptyState>
        ) : (
          <Suspense fallback={<Skeleton height="100%" />}>
            <UsageChartView chart={chart} measure={measure} />
          </Suspense>
        )}
      </div>
    </Card>
  );
}
