/** `/balance`: balance, adding money, past deposits. */
import './client.css';
import { useMe } from '../../api/session.js';
import { useBalance } from '../../features/account/balance.js';
import { WithFirstSteps } from '../../features/account/first-steps-panel.js';
import { PATHS } from '../../routing/paths.js';
import { Money } from '../../ui/display/money.js';
import { PageHeader } from '../../ui/display/page-header.js';
import { Stat, Stats } from '../../ui/display/stat.js';
import { ErrorState } from '../../ui/feedback/error-state.js';
import { LinkButton } from '../../ui/navigation/link-button.js';
import { CheckoutReturn } from './checkout-return.js';
import { DepositCard } from './deposit-card.js';
import { DepositHistory } from './deposit-history.js';

export function Page() {
  useMe();
  const { data, error, refetch } = useBalance();
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
          {error === null || data !== undefined ? (
            <Stats>
              <Stat label="Balance" value={data && <Money microUsd={data.balance_micro_usd} />} />
              <Stat label="Reserved for running requests" value={data && <Money microUsd={data.reserved_micro_usd} />} />
              <Stat label="Available to withdraw" value={data && <Money microUsd={data.withdrawable_micro_usd} />} />
              {data === undefined || data.pending_micro_usd === 0 ? null : (
                <Stat label="Pending earnings" value={<Money microUsd={data.pending_micro_usd} />} />
              )}
            </Stats>
          ) : (
            <ErrorState error={error} what="The balance" onRetry={() => void refetch()} />
          )}
          <DepositCard />
          <DepositHistory />
        </WithFirstSteps>
      </div>
    </>
  );
}
