/** Cards of the earnings page: `Withdraw` to request a withdrawal and set up payouts, and `WithdrawalHistory`. */
import type { ConsoleBalance, ConsolePayoutAccount, ConsoleWithdrawal } from '@inference/formats';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { useSettings } from '../../api/session.js';
import { useInvalidateBilling } from '../../features/account/balance.js';
import { checkUsd, floorToCents, formatUsdInput, microUsdOf } from '../../features/account/usd-amount.js';
import { UsdField } from '../../features/account/usd-field.js';
import { WithdrawalState } from '../../features/account/withdrawal-state.js';
import { ConfirmDialog } from '../../ui/dialogs/dialog.js';
import { formatUsd, Money, Time } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { Skeleton } from '../../ui/feedback/placeholders.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { EARNINGS_KEY, useWithdrawals } from './queries.js';

export function Withdraw({ balance }: { readonly balance: ConsoleBalance | undefined }) {
  const settings = useSettings();
  if (balance === undefined || settings === null) {
    return (
      <Card title="Withdraw">
        <Skeleton height="11rem" />
      </Card>
    );
  }
  const max = floorToCents(balance.withdrawable_micro_usd);
  const min = settings.min_withdrawal_micro_usd;
  return (
    <Card title="Withdraw" about={`Minimum ${formatUsd(min)} per withdrawal. Only earnings can be withdrawn, deposits cannot.`}>
      <div className="stack">
        {max < min ? (
          <p>
            {formatUsd(balance.withdrawable_micro_usd)} available so far. Withdrawals start at {formatUsd(min)}.
          </p>
        ) : (
          <WithdrawForm min={min} max={max} />
        )}
        <PendingEarnings balance={balance} />
        {settings.payouts ? <PayoutAccount /> : <p className="small muted">The operator of this network pays withdrawals manually.</p>}
      </div>
    </Card>
  );
}

/** Maximum number of dates with their own line. The amounts of later dates are combined into one line. */
const MAX_DATES = 10;

/** Dates on which pending earnings become available. */
function PendingEarnings({ balance: { pending_micro_usd, maturing } }: { readonly balance: ConsoleBalance }) {
  if (pending_micro_usd === 0) return null;
  const later = maturing.slice(MAX_DATES).reduce((sum, { amount_micro_usd }) => sum + amount_micro_usd, 0);
  return (
    <div className="small">
      <p>{formatUsd(pending_micro_usd)} is pending. Earnings become available after a waiting period in which payments can be disputed.</p>
      <ul>
        {maturing.slice(0, MAX_DATES).map(({ at, amount_micro_usd }) => (
          <li key={at}>
            {formatUsd(amount_micro_usd)} on <Time at={at} as="date" />
          </li>
        ))}
        {later === 0 ? null : <li>{formatUsd(later)} after that</li>}
      </ul>
    </div>
  );
}

function WithdrawForm({ min, max }: { readonly min: number; readonly max: number }) {
  const [confirming, setConfirming] = useState<number | null>(null);
  const toast = useToast();
  const queryClient = useQueryClient();
  const invalidateBilling = useInvalidateBilling();
  const { field, onSubmit, setValue, reset } = useFormMutation({ amount: '' }, async ({ amount }) => setConfirming(microUsdOf(amount)));
  const withdraw = async (amount: number): Promise<void> => {
    await api.post<ConsoleWithdrawal>('/console/v1/withdrawals', { amount_micro_usd: amount });
    toast.success(`Withdrawal of ${formatUsd(amount)} requested`, 'The operator will pay it. See its state below.');
    reset();
    await Promise.all([invalidateBilling(), queryClient.invalidateQueries({ queryKey: EARNINGS_KEY })]);
  };
  return (
    <Form onSubmit={onSubmit}>
      <UsdField
        label="Amount"
        hint={`${formatUsd(max)} available.`}
        {...field('amount', { validate: (text) => checkUsd(text, { min, max }) })}
      />
      <div className="row">
        <Button type="submit" kind="primary">
          Withdraw
        </Button>
        <Button kind="quiet" onClick={() => setValue('amount', formatUsdInput(max), { shouldValidate: true })}>
          Maximum
        </Button>
      </div>
      {confirming === null ? null : (
        <ConfirmDialog
          onClose={() => setConfirming(null)}
          title={`Withdraw ${formatUsd(confirming)}?`}
          confirm={`Withdraw ${formatUsd(confirming)}`}
          onConfirm={() => withdraw(confirming)}
        >
          <p>
            The amount is deducted from your balance immediately and paid by the operator. If rejected, the amount returns to your balance.
          </p>
        </ConfirmDialog>
      )}
    </Form>
  );
}

function PayoutAccount() {
  const { mutate, isPending, error, data } = useMutation({
    mutationFn: () => api.post<ConsolePayoutAccount>('/console/v1/payout-account'),
    onSuccess: ({ onboarding_url }) => {
      if (onboarding_url !== null) window.location.assign(onboarding_url);
    },
  });
  return (
    <div className="stack-small">
      <h3>Payouts</h3>
      <ErrorNote error={error} />
      {data?.ready ? (
        <Note tone="good">Payouts are set up. No further action is needed.</Note>
      ) : (
        <>
          <p className="small muted">
            The payment service asks for your name and bank account on its own page. This network does not see them.
          </p>
          <div>
            <Button busy={isPending} onClick={() => mutate()}>
              Set up payouts
            </Button>
          </div>
        </>
      )}
    </div>
  );
}

export function WithdrawalHistory() {
  return (
    <TableCard
      title="Withdrawals"
      subject="Your withdrawals"
      list={useWithdrawals()}
      caption="Your withdrawals"
      columns={COLUMNS}
      rowKey={({ id }) => id}
      empty={<p className="card-empty">No withdrawals yet.</p>}
    />
  );
}

const COLUMNS: readonly Column<ConsoleWithdrawal>[] = [
  { key: 'at', header: 'Requested', rowHeader: true, cell: ({ created_at }) => <Time at={created_at} as="date" /> },
  { key: 'amount', header: 'Amount', numeric: true, cell: ({ amount_micro_usd }) => <Money microUsd={amount_micro_usd} /> },
  { key: 'state', header: 'State', cell: ({ state }) => <WithdrawalState state={state} /> },
  { key: 'ended', header: 'Completed', cell: ({ ended_at }) => (ended_at === null ? '—' : <Time at={ended_at} as="date" />) },
];
