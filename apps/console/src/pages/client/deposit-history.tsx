/** Deposits of the account, newest first. */
import type { ConsoleDeposit } from '@inference/formats';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { MONEY_KEY } from '../../features/account/balance.js';
import { Badge } from '../../ui/display/badge.js';
import { Card } from '../../ui/display/card.js';
import { LoadMore } from '../../ui/display/load-more.js';
import { formatUsd, Money } from '../../ui/display/money.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Time } from '../../ui/display/time.js';
import { EmptyState } from '../../ui/feedback/empty-state.js';
import { ErrorState } from '../../ui/feedback/error-state.js';
import type { Tone } from '../../ui/feedback/note.js';

const PAGE_ROWS = 20;
const SOURCES: Readonly<Record<ConsoleDeposit['source'], string>> = {
  stripe: 'Payment',
  development: 'Test funds',
  admin: 'Deposit by the operator',
};
const STATES: Readonly<Record<ConsoleDeposit['state'], readonly [Tone, string]>> = {
  open: ['neutral', 'Waiting'],
  paid: ['good', 'Paid'],
  expired: ['neutral', 'Expired'],
  failed: ['bad', 'Failed'],
};

const COLUMNS: readonly Column<ConsoleDeposit>[] = [
  { key: 'when', header: 'When', rowHeader: true, cell: ({ created_at }) => <Time at={created_at} as="date-time" /> },
  { key: 'how', header: 'How', cell: ({ source }) => SOURCES[source] },
  { key: 'state', header: 'State', cell: (deposit) => <State deposit={deposit} /> },
  { key: 'amount', header: 'Amount', numeric: true, cell: ({ amount_micro_usd }) => <Money microUsd={amount_micro_usd} /> },
];

export function DepositHistory() {
  const list = usePaginatedQuery<ConsoleDeposit>([...MONEY_KEY, 'deposits'], '/console/v1/deposits', { limit: PAGE_ROWS });
  return (
    <Card title="Deposits" flush>
      {list.error !== null && list.rows === undefined ? (
        <ErrorState error={list.error} what="The deposits" onRetry={() => void list.refetch()} />
      ) : (
        <Table
          caption="List of deposits"
          columns={COLUMNS}
          rows={list.rows}
          rowKey={({ id }) => id}
          empty={<EmptyState title="No deposits yet">Add money above. It is available immediately.</EmptyState>}
          stacked
          loadingRows={2}
        />
      )}
      <LoadMore list={list} />
    </Card>
  );
}

function State({ deposit }: { readonly deposit: ConsoleDeposit }) {
  const [tone, label] = STATES[deposit.state];
  return (
    <span className="inline">
      <Badge tone={tone}>{label}</Badge>
      {deposit.refunded_micro_usd > 0 ? <Badge tone="warn">{`${formatUsd(deposit.refunded_micro_usd)} refunded`}</Badge> : null}
      {deposit.disputed_at === null ? null : <Badge tone="bad">Disputed</Badge>}
    </span>
  );
}
