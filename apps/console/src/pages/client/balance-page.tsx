/** `/balance`: balance, adding credits, deposits and billing details. The payment service redirects here after a checkout. */
import './client.css';
import type { ConsoleDeposit, ConsoleDepositPage } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Link, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { usePermission, useSettings } from '../../api/session.js';
import { BILLING_QUERY_KEY, useBalance, useInvalidateBilling } from '../../features/account/balance.js';
import { WithFirstSteps } from '../../features/account/first-steps-panel.js';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { formatUsd, Money, Time } from '../../ui/display/figures.js';
import { PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';
import { BillingDetailsCard } from './billing-details-card.js';
import { DepositCard } from './deposit-card.js';
import { DEPOSIT_METHODS, DepositState } from './deposit-state.js';
import { LowBalanceCard } from './low-balance-card.js';

export function Page() {
  const canPay = usePermission('billing.write');
  const canRead = usePermission('billing.read');
  const balance = useBalance();
  const { data } = balance;
  return (
    <>
      <PageHeader
        title="Balance"
        about="Requests are charged to this balance. The maximum cost of a request is reserved while it runs."
        actions={
          <LinkButton href={PATHS.usage} kind="secondary">
            View usage
          </LinkButton>
        }
      />
      <div className="stack">
        <CheckoutReturn />
        <WithFirstSteps>
          <Loaded query={balance} subject="The balance">
            <Stats>
              <Stat label="Balance" value={data && <Money microUsd={data.balance_micro_usd} />} />
              <Stat label="Reserved for running requests" value={data && <Money microUsd={data.reserved_micro_usd} />} />
              <Stat label="Available to withdraw" value={data && <Money microUsd={data.withdrawable_micro_usd} />} />
              {data === undefined || data.pending_micro_usd === 0 ? null : (
                <Stat label="Pending earnings" value={<Money microUsd={data.pending_micro_usd} />} />
              )}
            </Stats>
          </Loaded>
          {canPay ? <DepositCard /> : null}
          {canPay ? <LowBalanceCard /> : null}
          {canRead ? <DepositHistory /> : null}
          {canPay ? <BillingDetailsCard /> : null}
        </WithFirstSteps>
      </div>
    </>
  );
}

const PAGE_ROWS = 20;
const COLUMNS: readonly Column<ConsoleDeposit>[] = [
  { key: 'when', header: 'When', rowHeader: true, cell: ({ created_at }) => <Time at={created_at} as="date-time" /> },
  { key: 'how', header: 'How', cell: ({ source }) => DEPOSIT_METHODS[source] },
  { key: 'state', header: 'State', cell: (deposit) => <DepositState deposit={deposit} /> },
  { key: 'amount', header: 'Amount', numeric: true, cell: ({ amount_micro_usd }) => <Money microUsd={amount_micro_usd} /> },
  {
    key: 'receipt',
    header: 'Receipt',
    cell: ({ id, state }) => (state === 'paid' ? <Link href={pathWithId(PATHS.deposit, id)}>View receipt</Link> : '—'),
  },
];

function DepositHistory() {
  const settings = useSettings();
  const list = usePaginatedQuery<ConsoleDeposit>([...BILLING_QUERY_KEY, 'deposits'], '/console/v1/deposits', { limit: PAGE_ROWS });
  return (
    <TableCard
      title="Deposits"
      subject="The deposits"
      list={list}
      caption="List of deposits"
      columns={COLUMNS}
      rowKey={({ id }) => id}
      empty={
        <EmptyState title="No deposits yet">
          {settings?.deposits.length === 0
            ? 'Deposits that the operator adds appear here.'
            : 'Credits that you add above are available immediately.'}
        </EmptyState>
      }
      stacked
      loadingRows={2}
    />
  );
}

/** Polling interval until a payment is confirmed, in milliseconds. */
const POLL_MS = 2000;

/** Shows the result of a checkout. The payment service returns with `?deposit=<id>` or `?cancelled`. */
function CheckoutReturn() {
  const query = new URLSearchParams(useSearch());
  const id = query.get('deposit');
  if (query.has('cancelled')) {
    return (
      <Note title="Payment cancelled">
        <p>You were not charged.</p>
      </Note>
    );
  }
  return id === null ? null : <DepositStatus id={id} />;
}

/** Shows the state of a deposit. Polls while the deposit is open: the payment service often confirms after the browser's return. */
function DepositStatus({ id }: { readonly id: string }) {
  const invalidateBilling = useInvalidateBilling();
  const { data: deposit } = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'returned', id],
    queryFn: async ({ signal }): Promise<ConsoleDeposit | null> => {
      const { data } = await api.get<ConsoleDepositPage>('/console/v1/deposits', { signal });
      return data.find((deposit) => deposit.id === id) ?? null;
    },
    refetchInterval: ({ state }) => (state.data?.state === 'open' || state.data === undefined ? POLL_MS : false),
  });
  const state = deposit?.state;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the balance is fetched again once per state
  useEffect(() => {
    if (state === 'paid') void invalidateBilling();
  }, [state]);
  if (deposit === undefined || deposit === null) return null;
  const amount = formatUsd(deposit.amount_micro_usd);
  switch (deposit.state) {
    case 'open':
      return (
        <Note title={`Waiting for your payment of ${amount} to be confirmed.`}>
          <p>Cards take seconds, other payment methods longer. You can leave this page.</p>
        </Note>
      );
    case 'paid':
      return (
        <Note tone="good" title={`${amount} was added to your balance.`}>
          <p>Thank you.</p>
        </Note>
      );
    case 'expired':
    case 'failed':
      return (
        <Note tone="warn" title={`The payment of ${amount} failed.`}>
          <p>Nothing was added. Try again or use another payment method.</p>
        </Note>
      );
  }
}
