/** `HealthHistoryCard`: charts of health figures over the last hour, day or week, for all coordinators. Part of the health page. */
import type { AdminHealthHistory } from '@inference/formats';
import { useState } from 'react';
import { Chart } from '../../../ui/chart/chart.js';
import { Card } from '../../../ui/display/page.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { EmptyState, Skeleton } from '../../../ui/feedback/placeholders.js';
import { Segmented } from '../../../ui/forms/field.js';
import { useHealthHistory } from '../queries.js';
import { hasData, healthCharts, timeLabels } from './health-series.js';

type Range = AdminHealthHistory['range'];

const RANGES: readonly { readonly value: Range; readonly label: string; readonly period: string; readonly interval: string }[] = [
  { value: '1h', label: '1 hour', period: 'last hour', interval: 'minute' },
  { value: '24h', label: '24 hours', period: 'last 24 hours', interval: 'ten minutes' },
  { value: '7d', label: '7 days', period: 'last 7 days', interval: 'hour' },
];

export function HealthHistoryCard() {
  const [range, setRange] = useState<Range>('1h');
  const history = useHealthHistory(range);
  return (
    <Card
      title="Over time"
      about="All coordinators, up to the last complete interval."
      actions={<Segmented<Range> label="Range" value={range} options={RANGES} onValue={setRange} />}
    >
      {history.data !== undefined ? (
        <HealthCharts history={history.data} />
      ) : history.error !== null ? (
        <ErrorNote error={history.error} title="The history could not be loaded." />
      ) : (
        <Skeleton height="30rem" />
      )}
    </Card>
  );
}

function HealthCharts({ history }: { readonly history: AdminHealthHistory }) {
  const { period, interval } = RANGES.find(({ value }) => value === history.range) ?? { period: '', interval: '' };
  if (!hasData(history)) {
    const about = `This range has one data point per ${interval}. Charts appear after the first data point.`;
    return <EmptyState title="No data yet">{about}</EmptyState>;
  }
  const labels = timeLabels(history);
  return (
    <div className="columns">
      {healthCharts(history).map(({ title, kind, isStacked, format, series }) => (
        <section key={title} className="stack-small">
          <h3>{title}</h3>
          {series.length === 0 ? (
            <p className="card-about">{`None in the ${period}.`}</p>
          ) : (
            <Chart
              title={`${title}, ${period}.`}
              kind={kind}
              stacked={isStacked}
              labels={labels}
              series={series}
              format={format}
              height="10rem"
            />
          )}
        </section>
      ))}
    </div>
  );
}
