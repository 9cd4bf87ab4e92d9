/** Withdrawals of the account and their states. */
import type { ConsoleWithdrawal } from '@inference/formats';
import { WithdrawalState } from '../../features/account/withdrawal-state.js';
import { Card } from '../../ui/display/card.js';
import { LoadMore } from '../../ui/display/load-more.js';
import { Money } from '../../ui/display/money.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Time } from '../../ui/display/time.js';
import { ErrorState } from '../../ui/feedback/error-state.js';
import { useWithdrawals } from './queries.js';

export function WithdrawalHistory() {
  const withdrawals = useWithdrawals();
  const { rows } = withdrawals;
  return (
    <Card title="Withdrawals" flush>
      {rows === undefined && withdrawals.error !== null ? (
        <ErrorState what="Your withdrawals" error={withdrawals.error} onRetry={() => void withdrawals.refetch()} />
      ) : (
        <Table
          caption="Your withdrawals"
          columns={COLUMNS}
          rows={rows}
          rowKey={({ id }) => id}
          empty={<p className="card-empty">No withdrawals yet.</p>}
        />
      )}
      <LoadMore list={withdrawals} />
    </Card>
  );
}

const COLUMNS: readonly Column<ConsoleWithdrawal>[] = [
  { key: 'at', header: 'Requested', rowHeader: true, cell: ({ created_at }) => <Time at={created_at} as="date" /> },
  { key: 'amount', header: 'Amount', numeric: true, cell: ({ amount_micro_usd }) => <Money microUsd={amount_micro_usd} /> },
  { key: 'state', header: 'State', cell: ({ state }) => <WithdrawalState state={state} /> },
  { key: 'ended', header: 'Completed', cell: ({ ended_at }) => (ended_at === null ? '—' : <Time at={ended_at} as="date" />) },
];
