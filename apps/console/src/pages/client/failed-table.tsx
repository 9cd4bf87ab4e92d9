/** `FailedTable`: failed requests that match the filters of the usage page, newest first. */
import type { ConsoleFailedRequest } from '@inference/formats';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { formatDuration } from '../../ui/display/figures.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { ListChoice, PAGE_ROWS, RequestLink, type RequestList } from './usage-table.js';

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

/** Must be rendered with `key={query}`. Otherwise rows of the previous filter would stay visible. */
export function FailedTable({ query, onList }: { readonly query: string; readonly onList: (list: RequestList) => void }) {
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
