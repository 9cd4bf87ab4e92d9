/** Requests that match the filters, newest first. */
import type { ConsoleUsageEntry } from '@inference/formats';
import { Link } from 'wouter';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { MONEY_KEY } from '../../features/account/balance.js';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { Count, Money, Time } from '../../ui/display/figures.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';

const PAGE_ROWS = 20;
const SHORT_ID = 8;

const COLUMNS: readonly Column<ConsoleUsageEntry>[] = [
  { key: 'when', header: 'When', rowHeader: true, cell: ({ completed_at }) => <Time at={completed_at} as="date-time" /> },
  { key: 'model', header: 'Model', wide: true, cell: ({ model }) => <span className="breakable">{model}</span> },
  { key: 'key', header: 'Key', cell: ({ key }) => <span className="breakable">{key.name ?? 'unknown'}</span> },
  {
    key: 'machine',
    header: 'Machine',
    cell: ({ provider_id }) =>
      provider_id === null ? (
        'unknown'
      ) : (
        <Link href={pathWithId(PATHS.provider, provider_id)} title={provider_id}>
          <code>{provider_id.slice(0, SHORT_ID)}</code>
        </Link>
      ),
  },
  { key: 'in', header: 'Input', numeric: true, cell: ({ prompt_tokens }) => <Count value={prompt_tokens} /> },
  { key: 'out', header: 'Output', numeric: true, cell: (entry) => <Output entry={entry} /> },
  { key: 'cost', header: 'Cost', numeric: true, cell: ({ cost_micro_usd }) => <Money microUsd={cost_micro_usd} /> },
];

/** Needs `key={query}`: another filter is another list. */
export function UsageTable({ query }: { readonly query: string }) {
  const list = usePaginatedQuery<ConsoleUsageEntry>([...MONEY_KEY, 'usage', query], '/console/v1/usage', {
    ...Object.fromEntries(new URLSearchParams(query)),
    limit: PAGE_ROWS,
  });
  return (
    <TableCard
      title="Requests"
      what="The requests"
      list={list}
      caption="List of requests"
      columns={COLUMNS}
      rowKey={({ request_id }) => request_id}
      stacked="compact"
      empty={
        <EmptyState
          title="No requests match these filters"
          action={
            <LinkButton href={PATHS.playground} kind="secondary">
              Open the playground
            </LinkButton>
          }
        >
          Widen the filters, or make a request: it is listed when it completes.
        </EmptyState>
      }
    />
  );
}

function Output({ entry: { images, completion_tokens } }: { readonly entry: ConsoleUsageEntry }) {
  if (images > 0) return <span className="number">{images === 1 ? '1 image' : `${images} images`}</span>;
  return <Count value={completion_tokens} />;
}
