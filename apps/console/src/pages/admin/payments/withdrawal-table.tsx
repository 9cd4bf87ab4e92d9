/** Withdrawals, newest first, with the actions that complete requested ones. */
import type { ConsoleWithdrawal } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../../api/api-client.js';
import { useSettings } from '../../../api/session.js';
import { WithdrawalState } from '../../../features/account/withdrawal-state.js';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { ConfirmDialog } from '../../../ui/dialogs/confirm-dialog.js';
import { Card } from '../../../ui/display/card.js';
import { LoadMore } from '../../../ui/display/load-more.js';
import { formatUsd, Money } from '../../../ui/display/money.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { Time } from '../../../ui/display/time.js';
import { ErrorState } from '../../../ui/feedback/error-state.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { ADMIN, useAdminWithdrawals } from '../queries.js';

interface WithdrawalTableProps {
  readonly title?: string;
  /** Null: of all accounts. */
  readonly accountId: string | null;
  /** Null: all states. */
  readonly state: ConsoleWithdrawal['state'] | null;
}

type End = 'paid' | 'rejected' | 'transfer';
interface Asked {
  readonly end: End;
  readonly withdrawal: ConsoleWithdrawal;
}

export function WithdrawalTable({ title, accountId, state }: WithdrawalTableProps) {
  const withdrawals = useAdminWithdrawals(state, accountId);
  const [asked, setAsked] = useState<Asked | null>(null);
  const { rows } = withdrawals;
  if (rows === undefined && withdrawals.error !== null) {
    return <ErrorState what="The withdrawals" error={withdrawals.error} onRetry={() => void withdrawals.refetch()} />;
  }
  const columns: readonly Column<ConsoleWithdrawal>[] = [
    ...COLUMNS,
    {
      key: 'end',
      header: 'Actions',
      cell: (withdrawal) => <EndButtons withdrawal={withdrawal} onAsk={(end) => setAsked({ end, withdrawal })} />,
    },
  ];
  return (
    <Card {...(title === undefined ? {} : { title })} flush>
      <Table
        caption={title === undefined ? 'Withdrawals' : `${title}: the list`}
        columns={accountId === null ? columns : columns.filter(({ key }) => key !== 'account')}
        rows={rows}
        rowKey={({ id }) => id}
        empty={<p className="card-empty">{state === 'requested' ? 'No withdrawals to pay.' : 'No withdrawals yet.'}</p>}
        stacked
      />
      <LoadMore list={withdrawals} />
      {asked === null ? null : <EndDialog asked={asked} onClose={() => setAsked(null)} />}
    </Card>
  );
}

const COLUMNS: readonly Column<ConsoleWithdrawal>[] = [
  { key: 'at', header: 'Requested', cell: ({ created_at }) => <Time at={created_at} as="date-time" /> },
  {
    key: 'account',
    header: 'Account',
    rowHeader: true,
    cell: ({ account_id }) => (
      <Link href={pathWithId(PATHS.adminAccount, account_id)}>
        <code>{account_id}</code>
      </Link>
    ),
  },
  { key: 'amount', header: 'Amount', numeric: true, cell: ({ amount_micro_usd }) => <Money microUsd={amount_micro_usd} /> },
  { key: 'state', header: 'State', cell: ({ state }) => <WithdrawalState state={state} /> },
  { key: 'ended', header: 'Completed', cell: ({ ended_at }) => (ended_at === null ? '—' : <Time at={ended_at} as="date-time" />) },
];

function EndButtons({ withdrawal, onAsk }: { readonly withdrawal: ConsoleWithdrawal; readonly onAsk: (end: End) => void }) {
  const payouts = useSettings()?.payouts ?? false;
  if (withdrawal.state !== 'requested') return '—';
  return (
    <span className="cell-actions">
      {payouts ? (
        <Button size="small" kind="primary" onClick={() => onAsk('transfer')}>
          Transfer
        </Button>
      ) : null}
      <Button size="small" onClick={() => onAsk('paid')}>
        Mark as paid
      </Button>
      <Button size="small" onClick={() => onAsk('rejected')}>
        Reject
      </Button>
    </span>
  );
}

const WORDS: Readonly<Record<End, { title: (amount: string) => string; confirm: string; about: string; done: string }>> = {
  transfer: {
    title: (amount) => `Transfer ${amount}?`,
    confirm: 'Transfer',
    about: 'The payment service transfers the amount to the payout account of the owner. A repeated request transfers only once.',
    done: 'Transfer created',
  },
  paid: {
    title: (amount) => `Mark ${amount} as paid?`,
    confirm: 'Mark as paid',
    about: 'Confirm only if you paid it by other means. This cannot be undone.',
    done: 'Withdrawal marked as paid',
  },
  rejected: {
    title: (amount) => `Reject the withdrawal of ${amount}?`,
    confirm: 'Reject',
    about: 'The amount goes back to the balance of the account.',
    done: 'Withdrawal rejected',
  },
};

function EndDialog({ asked: { end, withdrawal }, onClose }: { readonly asked: Asked; readonly onClose: () => void }) {
  const toast = useToast();
  const queryClient = useQueryClient();
  const words = WORDS[end];
  const act = async (): Promise<void> => {
    await api.post(`/admin/v1/withdrawals/${encodeURIComponent(withdrawal.id)}/end`, { end });
    toast.success(words.done);
    await queryClient.invalidateQueries({ queryKey: ADMIN });
  };
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={words.title(formatUsd(withdrawal.amount_micro_usd))}
      confirm={words.confirm}
      onConfirm={act}
    >
      <p>{words.about}</p>
      <p className="small muted">
        Account <code>{withdrawal.account_id}</code>
      </p>
    </ConfirmDialog>
  );
}
