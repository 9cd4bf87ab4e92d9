/** `/balance/deposits/:id`: a deposit. If paid, the page is its printable receipt. */
import './deposit-page.css';
import type { ConsoleBillingDetails, ConsoleDeposit, ConsoleDepositReceipt } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { Printer } from 'lucide-react';
import { type ReactNode, useEffect } from 'react';
import { useParams } from 'wouter';
import { api } from '../../api/api-client.js';
import { LoadedPage } from '../../api/loaded-page.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { PATHS } from '../../routing/paths.js';
import { formatUsd, Time } from '../../ui/display/figures.js';
import { Fact, Facts, PageHeader } from '../../ui/display/page.js';
import { Note } from '../../ui/feedback/note.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import { DEPOSIT_METHODS, DepositState } from './deposit-state.js';

export function Page() {
  const { id = '' } = useParams();
  const receipt = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'deposit', id],
    queryFn: ({ signal }) => api.get<ConsoleDepositReceipt>(`/console/v1/deposits/${encodeURIComponent(id)}`, { signal }),
  });
  const notFound = (
    <EmptyState level={1} title="Deposit not found" action={<LinkButton href={PATHS.balance}>Your deposits</LinkButton>}>
      This account has no deposit with this ID.
    </EmptyState>
  );
  return <LoadedPage query={receipt} subject="The deposit" notFound={notFound} page={(data) => <Receipt receipt={data} />} />;
}

function Receipt({ receipt }: { readonly receipt: ConsoleDepositReceipt }) {
  const { deposit, currency, operator, account, billing_details: billing } = receipt;
  const isPaid = deposit.state === 'paid';
  const title = isPaid ? 'Receipt' : 'Deposit';
  // Browsers suggest the title as the name of the PDF file.
  useEffect(() => {
    document.title = `${title} ${deposit.id}`;
  }, [title, deposit.id]);
  return (
    <>
      <PageHeader
        title={title}
        about={isPaid ? `Credits for requests, added to the balance at ${window.location.host}.` : undefined}
        actions={
          <>
            <LinkButton href={PATHS.balance} kind="secondary">
              Balance and billing details
            </LinkButton>
            {isPaid ? (
              <Button kind="primary" icon={<Printer size={16} aria-hidden="true" />} onClick={() => window.print()}>
                Print or save as PDF
              </Button>
            ) : null}
          </>
        }
      />
      <div className="stack">
        {isPaid ? null : (
          <Note title="This deposit is not paid.">
            <p>Its receipt is available here once the payment is confirmed.</p>
          </Note>
        )}
        {deposit.source === 'development' ? (
          <Note title="Test funds are not real money.">
            <p>This coordinator runs in development mode.</p>
          </Note>
        ) : null}
        <article className="receipt">
          <div className="receipt-parties">
            <Party title="From" name={operator.name ?? window.location.host} details={operator} />
            <Party title="To" name={billing.name ?? account.name} details={billing}>
              {account.email}
            </Party>
          </div>
          <p className="receipt-amount">
            <span>{amountLabel(deposit)}</span>
            <strong className="number">{`${formatUsd(deposit.amount_micro_usd)} ${currency.toUpperCase()}`}</strong>
          </p>
          <Facts>
            <Fact label={isPaid ? 'Receipt number' : 'Deposit ID'}>
              <code>{deposit.id}</code>
            </Fact>
            <Fact label="Date">
              <Time at={deposit.ended_at ?? deposit.created_at} as="date" />
            </Fact>
            <Fact label="Method">{deposit.source === 'stripe' ? 'Payment through Stripe' : DEPOSIT_METHODS[deposit.source]}</Fact>
            <Fact label="Status">
              <DepositState deposit={deposit} />
            </Fact>
            {deposit.disputed_at === null ? null : (
              <Fact label="Disputed since">
                <Time at={deposit.disputed_at} as="date" />
              </Fact>
            )}
            <Fact label="Account">{account.name}</Fact>
          </Facts>
        </article>
      </div>
    </>
  );
}

/** Only deposits through Stripe are payments. Deposits by the operator and test funds are credited. */
function amountLabel({ state, source }: ConsoleDeposit): string {
  if (state !== 'paid') return 'Amount';
  return source === 'stripe' ? 'Amount paid' : 'Amount credited';
}

interface PartyProps {
  readonly title: string;
  readonly name: string;
  readonly details: ConsoleBillingDetails;
  readonly children?: ReactNode;
}

function Party({ title, name, details, children }: PartyProps) {
  return (
    <section>
      <h2>{title}</h2>
      <p className="receipt-name">{name}</p>
      {details.address === null ? null : <p className="receipt-address">{details.address}</p>}
      {details.tax_id === null ? null : <p>Tax ID: {details.tax_id}</p>}
      {children === undefined ? null : <p>{children}</p>}
    </section>
  );
}
