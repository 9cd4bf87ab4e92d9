/** `UsageChartCard`: chart of the usage by model, per day or hour, for the filters of the usage page. */
import type { ConsoleUsageDays, ConsoleUsageHours } from '@inference/formats';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { eachDay } from '../../features/account/utc-days.js';
import { Chart } from '../../ui/chart/chart.js';
import { formatShort, formatUsd } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { EmptyState, Skeleton } from '../../ui/feedback/placeholders.js';
import { Segmented } from '../../ui/forms/field.js';
import { filterQuery, type UsageFilter } from './usage-filter.js';
import { dailyChart, hourlyChart, type Measure, usedDays } from './usage-series.js';

const MEASURES: readonly { readonly value: Measure; readonly label: string }[] = [
  { value: 'cost', label: 'Cost' },
  { value: 'requests', label: 'Requests' },
  { value: 'tokens', label: 'Tokens' },
  { value: 'images', label: 'Images' },
];

type Bucket = 'hour' | 'day';
const BUCKETS: readonly { readonly value: Bucket; readonly label: string }[] = [
  { value: 'hour', label: 'Hourly' },
  { value: 'day', label: 'Daily' },
];
/** Maximum days for the chart by hour. More hours would not fit into one chart. */
const MAX_HOURLY_DAYS = 7;

interface UsageChartCardProps {
  readonly filter: UsageFilter;
  readonly usage: ConsoleUsageDays | undefined;
  /** Models used in the range under any filter, so that colours do not depend on the filter. */
  readonly models: readonly string[];
}

export function UsageChartCard({ filter, usage, models }: UsageChartCardProps) {
  const [measure, setMeasure] = useState<Measure>('cost');
  const [chosen, setChosen] = useState<Bucket | null>(null);
  const used = usage === undefined ? null : usedDays(usage.data);
  const dayCount = used === null ? 0 : eachDay(used).length;
  const mayBeHourly = dayCount > 0 && dayCount <= MAX_HOURLY_DAYS;
  const selectedBucket: Bucket = mayBeHourly ? (chosen ?? (dayCount === 1 ? 'hour' : 'day')) : 'day';
  const query = filterQuery({ ...filter, ...used }).toString();
  const hours = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'usage-hours', query],
    queryFn: ({ signal }) => api.get<ConsoleUsageHours>(`/console/v1/usage/hours?${query}`, { signal }),
    enabled: selectedBucket === 'hour',
    placeholderData: keepPreviousData,
  });
  // After a switch to hours, the chart by day stays visible until the hours are loaded.
  const bucket = selectedBucket === 'hour' && chosen === 'hour' && hours.isPending && !hours.isError ? 'day' : selectedBucket;
  const rows = bucket === 'hour' ? hours.data?.data : usage?.data;
  const chart =
    rows === undefined || usage === undefined
      ? null
      : bucket === 'hour'
        ? hourlyChart(hours.data?.data ?? [], measure, models)
        : dailyChart(usage.data, measure, models);
  return (
    <Card
      title={`By ${bucket} and model`}
      actions={
        <>
          {mayBeHourly ? <Segmented<Bucket> label="Interval" value={selectedBucket} options={BUCKETS} onValue={setChosen} /> : null}
          <Segmented<Measure> label="Measure" value={measure} options={MEASURES} onValue={setMeasure} />
        </>
      }
    >
      <div className="usage-chart">
        {bucket === 'hour' && hours.error !== null ? (
          <ErrorNote error={hours.error} title="The usage by hour could not be loaded." />
        ) : chart === null ? (
          <Skeleton height="100%" />
        ) : chart.series.length === 0 ? (
          <EmptyState title="No data">No usage of this kind in the selected range.</EmptyState>
        ) : (
          <Chart
            title={`Usage by ${bucket} and model: ${measure}.`}
            kind="bar"
            stacked
            labels={chart.labels}
            series={chart.series.map(({ name, values, colour }) => ({ label: name, values, colour }))}
            // Axis ticks may lie between two micro-USD.
            format={measure === 'cost' ? (value) => formatUsd(Math.round(value)) : formatShort}
            labelHeading={bucket === 'hour' ? 'Hour' : 'Day'}
            height="15rem"
          />
        )}
      </div>
    </Card>
  );
}
