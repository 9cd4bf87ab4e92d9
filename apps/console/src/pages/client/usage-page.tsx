/** `/usage`: totals, a chart by model, and lists of completed and failed requests, for the filters in the URL. */
import './client.css';
import type { ConsoleFailedRequest, ConsoleUsageDays } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { useLocation, useSearch } from 'wouter';
import { accountUrl } from '../../api/active-account.js';
import { api } from '../../api/api-client.js';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { Count, formatDuration, Money } from '../../ui/display/figures.js';
import { PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { Button } from '../../ui/forms/button.js';
import { DownloadLink } from '../../ui/forms/download-link.js';
import { Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { useUrlChoice } from '../../ui/navigation/url-state.js';
import { UsageChartCard } from './usage-chart.js';
import { filterQuery, readFilter, type UsageFilter, withFilter } from './usage-filter.js';
import { UsageFilters } from './usage-filters.js';
import { modelsUsed, usageTotals } from './usage-series.js';
import { ListChoice, PAGE_ROWS, REQUEST_LISTS, RequestLink, type RequestList, UsageTable } from './usage-table.js';

export function Page() {
  const search = useSearch();
  const [, navigate] = useLocation();
  const filter = readFilter(search, Date.now());
  const query = filterQuery(filter).toString();
  const days = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'usage-days', query],
    queryFn: ({ signal }) => api.get<ConsoleUsageDays>(`/console/v1/usage/days?${query}`, { signal }),
    placeholderData: (before) => before,
  });
  // Models used in the range under any model and key: options of the model filter, and basis of the chart's colours.
  const { data: all } = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'usage-models', filter.from, filter.to],
    queryFn: async ({ signal }) => {
      const range = filterQuery({ ...filter, model: null, key: null });
      return modelsUsed((await api.get<ConsoleUsageDays>(`/console/v1/usage/days?${range}`, { signal })).data);
    },
    placeholderData: (before) => before,
  });
  const [list, setList] = useUrlChoice<RequestList>('list', REQUEST_LISTS);
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

/** Form that opens one request by id, which clients find in the response. */
function FindRequest() {
  const [, navigate] = useLocation();
  const form = useFormMutation<{ id: string }>({ id: '' }, async ({ id }) => navigate(pathWithId(PATHS.usageRequest, id.trim())));
  return (
    <Form row onSubmit={form.onSubmit}>
      <Field
        label="Request ID"
        hideLabel
        placeholder="Request ID, for example req_… or chatcmpl-…"
        autoComplete="off"
        spellCheck={false}
        {...form.field('id', { validate: (id) => id.trim() !== '' || 'Enter a request ID.' })}
      />
      <Button type="submit">Find request</Button>
    </Form>
  );
}

const COLUMNS: readonly Column<ConsoleFailedRequest>[] = [
  { key: 'time', header: 'Time', rowHeader: true, cell: ({ request_id, failed_at }) => <RequestLink id={request_id} at={failed_at} /> },
  { key: 'model', header: 'Model', wide: true, cell: ({ model }) => <span className="breakable">{model ?? 'not on this network'}</span> },
  { key: 'key', header: 'Key', cell: ({ key }) => <span className="breakable">{key.name ?? 'unknown'}</span> },
  {
    key: 'error',
    header: 'Error',
    wide: true,
    cell: ({ error: { code, message } }) => (
      <span className="usage-error">
        <code>{code}</code>
        <small>{message}</small>
      </span>
    ),
  },
  { key: 'status', header: 'Status', numeric: true, cell: ({ error: { status } }) => status },
  { key: 'latency', header: 'Latency', numeric: true, cell: ({ latency_ms }) => formatDuration(latency_ms) },
];

/** Failed requests, newest first. Must be rendered with `key={query}`. Otherwise rows of the previous filter would stay visible. */
function FailedTable({ query, onList }: { readonly query: string; readonly onList: (list: RequestList) => void }) {
  const list = usePaginatedQuery<ConsoleFailedRequest>([...BILLING_QUERY_KEY, 'usage-failed', query], '/console/v1/usage/failed', {
    ...Object.fromEntries(new URLSearchParams(query)),
    limit: PAGE_ROWS,
  });
  return (
    <TableCard
      title="Requests"
      about="Failed requests cost nothing. Requests refused before they ran, such as those with a wrong key or an invalid body, are not listed."
      actions={<ListChoice list="failed" onList={onList} />}
      subject="The failed requests"
      list={list}
      caption="List of failed requests"
      columns={COLUMNS}
      rowKey={({ request_id }) => request_id}
      stacked="compact"
      empty={<EmptyState title="No failed requests">No request failed in the selected range.</EmptyState>}
    />
  );
}
