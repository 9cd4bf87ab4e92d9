/** `UsageTable`: completed requests that match the filters of the usage page, in an order that the user selects. */
import type { ConsoleUsageEntry, SortOrder, UsageSort } from '@inference/formats';
import { Link } from 'wouter';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { Count, formatCount, formatDuration, Money, Time } from '../../ui/display/figures.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';
import { Segmented, Select } from '../../ui/forms/field.js';
import { useUrlChoice } from '../../ui/navigation/url-state.js';

export const PAGE_ROWS = 20;

export const REQUEST_LISTS = ['completed', 'failed'] as const;
export type RequestList = (typeof REQUEST_LISTS)[number];

interface ListChoiceProps {
  readonly list: RequestList;
  readonly onList: (list: RequestList) => void;
}

/** Switch between this table and `FailedTable`. Both show it. */
export function ListChoice({ list, onList }: ListChoiceProps) {
  return (
    <Segmented<RequestList>
      label="Requests"
      value={list}
      options={[
        { value: 'completed', label: 'Completed' },
        { value: 'failed', label: 'Failed' },
      ]}
      onValue={onList}
    />
  );
}

/** Link to the page of a request, with its time as the text. */
export function RequestLink({ id, at }: { readonly id: string; readonly at: string }) {
  return (
    <Link href={pathWithId(PATHS.usageRequest, id)}>
      <Time at={at} as="exact" />
    </Link>
  );
}

const COLUMNS: readonly Column<ConsoleUsageEntry>[] = [
  {
    key: 'time',
    header: 'Time',
    rowHeader: true,
    sortable: true,
    cell: ({ request_id, completed_at }) => <RequestLink id={request_id} at={completed_at} />,
  },
  { key: 'model', header: 'Model', wide: true, sortable: true, cell: ({ model }) => <span className="breakable">{model}</span> },
  { key: 'key', header: 'Key', cell: ({ key }) => <span className="breakable">{key.name ?? 'unknown'}</span> },
  { key: 'tokens', header: 'Tokens', numeric: true, sortable: true, cell: (entry) => <Tokens entry={entry} /> },
  { key: 'cost', header: 'Cost', numeric: true, sortable: true, cell: ({ cost_micro_usd }) => <Money microUsd={cost_micro_usd} /> },
  { key: 'latency', header: 'Latency', numeric: true, sortable: true, cell: ({ latency_ms }) => formatDuration(latency_ms) },
];

const SORTS = ['time', 'model', 'tokens', 'cost', 'latency'] as const satisfies readonly UsageSort[];

/** Sort orders. The URL contains `value`. Narrow screens show a menu of `label`s instead of sortable headers (`client.css`). */
const ORDERS = [
  { value: 'time-desc', label: 'Newest first' },
  { value: 'time-asc', label: 'Oldest first' },
  { value: 'cost-desc', label: 'Highest cost' },
  { value: 'tokens-desc', label: 'Most tokens' },
  { value: 'latency-desc', label: 'Slowest first' },
  { value: 'model-asc', label: 'Model, A to Z' },
  { value: 'model-desc', label: 'Model, Z to A' },
  { value: 'cost-asc', label: 'Lowest cost' },
  { value: 'tokens-asc', label: 'Fewest tokens' },
  { value: 'latency-asc', label: 'Fastest first' },
] as const satisfies readonly { readonly value: `${UsageSort}-${SortOrder}`; readonly label: string }[];
type Order = (typeof ORDERS)[number]['value'];
const DEFAULT_ORDER: Order = 'time-desc';
/** The default comes first, as `useUrlChoice` requires. */
const ORDER_VALUES = [DEFAULT_ORDER, ...ORDERS.map(({ value }) => value)] as const;

/** Must be rendered with `key={query}`. Otherwise rows of the previous filter would stay visible. */
export function UsageTable({ query, onList }: { readonly query: string; readonly onList: (list: RequestList) => void }) {
  const [chosen, setChosen] = useUrlChoice<Order>('sort', ORDER_VALUES);
  const sort = SORTS.find((key) => chosen.startsWith(key)) ?? 'time';
  const order: SortOrder = chosen.endsWith('asc') ? 'asc' : 'desc';
  const list = usePaginatedQuery<ConsoleUsageEntry>([...BILLING_QUERY_KEY, 'usage', query, sort, order], '/console/v1/usage', {
    ...Object.fromEntries(new URLSearchParams(query)),
    sort,
    order,
    limit: PAGE_ROWS,
  });
  return (
    <TableCard
      title="Requests"
      actions={<ListChoice list="completed" onList={onList} />}
      subject="The requests"
      list={list}
      caption="List of requests"
      columns={COLUMNS}
      rowKey={({ request_id }) => request_id}
      stacked="compact"
      sorting={{ key: sort, order }}
      onSort={(next) => setChosen(ORDER_VALUES.find((value) => value === `${next.key}-${next.order}`) ?? DEFAULT_ORDER)}
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
    >
      <div className="usage-sort">
        <Select<Order> label="Sort by" value={chosen} options={ORDERS} onValue={setChosen} />
      </div>
    </TableCard>
  );
}

function Tokens({ entry: { images, prompt_tokens, completion_tokens } }: { readonly entry: ConsoleUsageEntry }) {
  if (images > 0) return <span className="number">{images === 1 ? '1 image' : `${images} images`}</span>;
  return (
    <span className="usage-tokens">
      <Count value={prompt_tokens + completion_tokens} />
      <small className="number">
        {formatCount(prompt_tokens)} in, {formatCount(completion_tokens)} out
      </small>
    </span>
  );
}
