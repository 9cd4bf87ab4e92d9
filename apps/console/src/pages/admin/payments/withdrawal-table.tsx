/** `WithdrawalTable`: withdrawals, newest first. Operators can transfer, mark as paid or reject requested ones. */
import type { ConsoleWithdrawal } from '@inference/formats';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../../api/api-client.js';
import { useSettings } from '../../../api/session.js';
import { WithdrawalState } from '../../../features/account/withdrawal-state.js';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { ConfirmDialog } from '../../../ui/dialogs/dialog.js';
import { formatUsd, Money, Time } from '../../../ui/display/figures.js';
import { type Column, TableCard } from '../../../ui/display/table.js';
import { Button } from '../../../ui/forms/button.js';
import { useAdminWithdrawals, useToastAndRefetch } from '../queries.js';

interface WithdrawalTableProps {
  readonly title?: string;
  /** Null: all accounts. */
  readonly accountId: string | null;
  /** Null: all states. */
  readonly state: ConsoleWithdrawal['state'] | null;
}

type End = 'paid' | 'rejected' | 'transfer';
/** End of a withdrawal that the operator has chosen and not yet confirmed. */
interface PendingEnd {
  readonly end: End;
  readonly withdrawal: ConsoleWithdrawal;
}

export function WithdrawalTable({ title, accountId, state }: WithdrawalTableProps) {
  const withdrawals = useAdminWithdrawals(state, accountId);
  const [pending, setPending] = useState<PendingEnd | null>(null);
  const columns: readonly Column<ConsoleWithdrawal>[] = [
    ...COLUMNS,
    {
      key: 'end',
      header: 'Actions',
      cell: (withdrawal) => <EndButtons withdrawal={withdrawal} onEnd={(end) => setPending({ end, withdrawal })} />,
    },
  ];
  return (
    <>
      <TableCard
        title={title}
        subject="The withdrawals"
        list={withdrawals}
        caption={title === undefined ? 'Withdrawals' : `${title}: the list`}
        columns={accountId === null ? columns : columns.filter(({ key }) => key !== 'account')}
        rowKey={({ id }) => id}
        empty={<p className="card-empty">{state === 'requested' ? 'No withdrawals to pay.' : 'No withdrawals yet.'}</p>}
        stacked
      />
      {pending === null ? null : <EndDialog pending={pending} onClose={() => setPending(null)} />}
    </>
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

function EndButtons({ withdrawal, onEnd }: { readonly withdrawal: ConsoleWithdrawal; readonly onEnd: (end: End) => void }) {
  const payouts = useSettings()?.payouts ?? false;
  if (withdrawal.state !== 'requested') return '—';
  return (
    <span className="cell-actions">
      {payouts ? (
        <Button size="small" kind="primary" onClick={() => onEnd('transfer')}>
          Transfer
        </Button>
      ) : null}
      <Button size="small" onClick={() => onEnd('paid')}>
        Mark as paid
      </Button>
      <Button size="small" onClick={() => onEnd('rejected')}>
        Reject
      </Button>
    </span>
  );
}

const END_TEXTS: Readonly<Record<End, { title: (amount: string) => string; confirm: string; about: string; done: string }>> = {
  transfer: {
    title: (amount) => `Transfer ${amount}?`,
    confirm: 'Transfer',
    about: 'The payment service transfers the amount to the payout account of the owner. A repeated request transfers only once.',
    done: 'Transfer created',
  },
  paid: {
    title: (amount) => `Mark ${amount} as paid?`,
    confirm: 'Mark as paid',
    about: 'Confirm only if you paid the amount by other means. This cannot be undone.',
    done: 'Withdrawal marked as paid',
  },
  rejected: {
    title: (amount) => `Reject the withdrawal of ${amount}?`,
    confirm: 'Reject',
    about: 'The amount goes back to the balance of the account.',
    done: 'Withdrawal rejected',
  },
};

function EndDialog({ pending: { end, withdrawal }, onClose }: { readonly pending: PendingEnd; readonly onClose: () => void }) {
  const toastAndRefetch = useToastAndRefetch();
  const texts = END_TEXTS[end];
  const act = async (): Promise<void> => {
    await api.post(`/admin/v1/withdrawals/${encodeURIComponent(withdrawal.id)}/end`, { end });
    await toastAndRefetch(texts.done);
  };
  return (
    <ConfirmDialog onClose={onClose} title={texts.title(formatUsd(withdrawal.amount_micro_usd))} confirm={texts.confirm} onConfirm={act}>
      <p>{texts.about}</p>
      <p className="small muted">
        Account <code>{withdrawal.account_id}</code>
      </p>
    </ConfirmDialog>
  );
}
