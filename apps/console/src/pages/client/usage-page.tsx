/** `/usage`: totals, a chart by model, and lists of completed and failed requests, for the filters in the URL. */
import './client.css';
import type { ConsoleUsageDays } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { useLocation, useSearch } from 'wouter';
import { accountUrl } from '../../api/active-account.js';
import { api } from '../../api/api-client.js';
import { useMe } from '../../api/session.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { PATHS } from '../../routing/paths.js';
import { Count, Money } from '../../ui/display/figures.js';
import { PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { DownloadLink } from '../../ui/forms/download-link.js';
import { useUrlChoice } from '../../ui/navigation/url-state.js';
import { FailedTable } from './failed-table.js';
import { FindRequest } from './find-request.js';
import { UsageChartCard } from './usage-chart.js';
import { filterQuery, readFilter, type UsageFilter, withFilter } from './usage-filter.js';
import { UsageFilters } from './usage-filters.js';
import { modelsUsed, usageTotals } from './usage-series.js';
import { REQUEST_LISTS, type RequestList, UsageTable } from './usage-table.js';

export function Page() {
  useMe();
  const search = useSearch();
  const [, navigate] = useLocation();
  const filter = readFilter(search, Date.now());
  const query = filterQuery(filter).toString();
  const days = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'usage-days', query],
    queryFn: ({ signal }) => api.get<ConsoleUsageDays>(`/console/v1/usage/days?${query}`, { signal }),
    placeholderData: (before) => before,
  });
  // The options of the model filter do not depend on the selected model and key.
  const { data: all } = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'usage-models', filter.from, filter.to],
    queryFn: async ({ signal }) => {
      const range = filterQuery({ ...filter, model: null, key: null });
      return modelsUsed((await api.get<ConsoleUsageDays>(`/console/v1/usage/days?${range}`, { signal })).data);
    },
    placeholderData: (before) => before,
  });
  const [list, setList] = useUrlChoice<RequestList>('list', REQUEST_LISTS);
  // Retains the parameters for list and sort order.
  const show = (next: UsageFilter): void => navigate(`${PATHS.usage}?${withFilter(search, next)}`, { replace: true });
  const totals = days.data && usageTotals(days.data.data);
  return (
    <>
      <PageHeader
        title="Usage"
        about="Your requests, with tokens, cost and latency. Days and hours are in UTC. Prompts and responses are not stored."
        actions={
          <DownloadLink href={accountUrl(`/console/v1/usage.csv?${query}`)} fileName="usage.csv">
            Download CSV
          </DownloadLink>
        }
      />
      <div className="stack">
        <UsageFilters filter={filter} models={all ?? []} onChange={show} />
        <Loaded query={days} subject="Your usage">
          <Stats>
            <Stat label="Spent" value={totals && <Money microUsd={totals.costMicroUsd} />} />
            <Stat label="Requests" value={totals && <Count value={totals.requests} />} />
            <Stat label="Tokens" value={totals && <Count value={totals.tokens} short />} />
            <Stat label="Images" value={totals && <Count value={totals.images} />} />
          </Stats>
          <UsageChartCard filter={filter} usage={days.data} models={all ?? []} />
        </Loaded>
        <FindRequest />
        {list === 'failed' ? (
          <FailedTable key={query} query={query} onList={setList} />
        ) : (
          <UsageTable key={query} query={query} onList={setList} />
        )}
      </div>
    </>
  );
}
