/** `/usage`: totals, a chart per day and model, and every request, for the filters in the URL. */
import './client.css';
import type { ConsoleUsageDays } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { useMe } from '../../api/session.js';
import { MONEY_KEY } from '../../features/account/balance.js';
import { shortDay } from '../../features/account/utc-days.js';
import { PATHS } from '../../routing/paths.js';
import { Chart } from '../../ui/chart/chart.js';
import { Count, formatShort, formatUsd, Money } from '../../ui/display/figures.js';
import { Card, PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState, Skeleton } from '../../ui/feedback/placeholders.js';
import { Segmented } from '../../ui/forms/field.js';
import { filterQuery, readFilter, type UsageFilter } from './usage-filter.js';
import { UsageFilters } from './usage-filters.js';
import { type Measure, modelsUsed, usageChart, usageTotals } from './usage-series.js';
import { UsageTable } from './usage-table.js';

export function Page() {
  useMe();
  const search = useSearch();
  const [, navigate] = useLocation();
  const filter = readFilter(search, Date.now());
  const query = filterQuery(filter).toString();
  const days = useQuery({
    queryKey: [...MONEY_KEY, 'usage-days', query],
    queryFn: ({ signal }) => api.get<ConsoleUsageDays>(`/console/v1/usage/days?${query}`, { signal }),
    placeholderData: (before) => before,
  });
  // The choice of models is independent of the selected model and key.
  const { data: all } = useQuery({
    queryKey: [...MONEY_KEY, 'usage-models', filter.from, filter.to],
    queryFn: async ({ signal }) => {
      const range = filterQuery({ ...filter, model: null, key: null });
      return modelsUsed((await api.get<ConsoleUsageDays>(`/console/v1/usage/days?${range}`, { signal })).data);
    },
    placeholderData: (before) => before,
  });
  const show = (next: UsageFilter): void => navigate(`${PATHS.usage}?${filterQuery(next)}`, { replace: true });
  const totals = days.data && usageTotals(days.data.data);
  return (
    <>
      <PageHeader
        title="Usage"
        about="Completed and charged requests. Days are in UTC. Prompts and responses are not stored."
        actions={
          <a className="button" data-kind="secondary" data-size="normal" href={`/console/v1/usage.csv?${query}`} download="usage.csv">
            <Download size={18} aria-hidden="true" />
            <span className="button-text">Download CSV</span>
          </a>
        }
      />
      <div className="stack">
        <UsageFilters filter={filter} models={all ?? []} onChange={show} />
        <Loaded query={days} what="Your usage">
          <Stats>
            <Stat label="Spent" value={totals && <Money microUsd={totals.costMicroUsd} />} />
            <Stat label="Requests" value={totals && <Count value={totals.requests} />} />
            <Stat label="Tokens" value={totals && <Count value={totals.tokens} short />} />
            <Stat label="Images" value={totals && <Count value={totals.images} />} />
          </Stats>
          <UsageChartCard usage={days.data} models={all ?? []} />
        </Loaded>
        <UsageTable key={query} query={query} />
      </div>
    </>
  );
}

const MEASURES: readonly { readonly value: Measure; readonly label: string }[] = [
  { value: 'cost', label: 'Cost' },
  { value: 'requests', label: 'Requests' },
  { value: 'tokens', label: 'Tokens' },
  { value: 'images', label: 'Images' },
];

/** Usage chart with a choice of the measure. `models`: models of the range under any filter, for stable colours. */
function UsageChartCard({ usage, models }: { readonly usage: ConsoleUsageDays | undefined; readonly models: readonly string[] }) {
  const [measure, setMeasure] = useState<Measure>('cost');
  const chart = usage === undefined ? null : usageChart(usage, measure, models);
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
            series={chart.series.map(({ name, values, colour }) => ({ label: name, values, colour }))}
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
