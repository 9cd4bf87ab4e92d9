/** `/usage`: totals, a chart per day and model, and every request, for the filters in the URL. */
import './client.css';
import type { ConsoleUsageDays } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { useMe } from '../../api/session.js';
import { MONEY_KEY } from '../../features/account/balance.js';
import { PATHS } from '../../routing/paths.js';
import { Money } from '../../ui/display/money.js';
import { Count } from '../../ui/display/number.js';
import { PageHeader } from '../../ui/display/page-header.js';
import { Stat, Stats } from '../../ui/display/stat.js';
import { ErrorState } from '../../ui/feedback/error-state.js';
import { UsageChartCard } from './usage-chart-card.js';
import { filterQuery, readFilter, type UsageFilter } from './usage-filter.js';
import { UsageFilters } from './usage-filters.js';
import { modelsUsed, usageTotals } from './usage-series.js';
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
        {days.error !== null && days.data === undefined ? (
          <ErrorState error={days.error} what="Your usage" onRetry={() => void days.refetch()} />
        ) : (
          <>
            <Stats>
              <Stat label="Spent" value={totals && <Money microUsd={totals.costMicroUsd} />} />
              <Stat label="Requests" value={totals && <Count value={totals.requests} />} />
              <Stat label="Tokens" value={totals && <Count value={totals.tokens} short />} />
              <Stat label="Images" value={totals && <Count value={totals.images} />} />
            </Stats>
            <UsageChartCard usage={days.data} />
          </>
        )}
        <UsageTable key={query} query={query} />
      </div>
    </>
  );
}
