/** Result of a payment after the return from the payment service, whose webhook may arrive later than the user. */
import type { ConsoleDeposit, ConsoleDepositPage } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { MONEY_KEY, useInvalidateMoney } from '../../features/account/balance.js';
import { formatUsd } from '../../ui/display/money.js';
import { Note } from '../../ui/feedback/note.js';

const ASK_EVERY_MS = 2000;

export function CheckoutReturn() {
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

function DepositStatus({ id }: { readonly id: string }) {
  const invalidateMoney = useInvalidateMoney();
  const { data: deposit } = useQuery({
    queryKey: [...MONEY_KEY, 'returned', id],
    queryFn: async ({ signal }): Promise<ConsoleDeposit | null> => {
      const { data } = await api.get<ConsoleDepositPage>('/console/v1/deposits', { signal });
      return data.find((one) => one.id === id) ?? null;
    },
    refetchInterval: ({ state }) => (state.data?.state === 'open' || state.data === undefined ? ASK_EVERY_MS : false),
  });
  const state = deposit?.state;
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once per state
  useEffect(() => {
    if (state === 'paid') void invalidateMoney();
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
