/** `DepositTable`: deposits of one account or of all accounts, newest first. */
import type { AdminDepositPage } from '@inference/formats';
import { Link } from 'wouter';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { Money, Time } from '../../../ui/display/figures.js';
import { Badge } from '../../../ui/display/page.js';
import { type Column, TableCard } from '../../../ui/display/table.js';
import { useDeposits } from '../queries.js';

type Deposit = AdminDepositPage['data'][number];

interface DepositTableProps {
  readonly title?: string;
  /** Null: all accounts. */
  readonly accountId: string | null;
}

export function DepositTable({ title, accountId }: DepositTableProps) {
  const deposits = useDeposits(accountId);
  return (
    <TableCard
      title={title}
      subject="The deposits"
      list={deposits}
      caption={title === undefined ? 'Deposits' : `${title}: the list`}
      columns={accountId === null ? COLUMNS : COLUMNS.filter(({ key }) => key !== 'account')}
      rowKey={({ id }) => id}
      empty={<p className="card-empty">No deposits yet.</p>}
      stacked
    />
  );
}

const SOURCES: Readonly<Record<Deposit['source'], string>> = { stripe: 'Payment service', development: 'Development', admin: 'Manual' };

const STATES: Readonly<Record<Deposit['state'], { readonly label: string; readonly tone: 'good' | 'neutral' | 'warn' | 'bad' }>> = {
  open: { label: 'Pending', tone: 'neutral' },
  paid: { label: 'Paid', tone: 'good' },
  expired: { label: 'Expired', tone: 'neutral' },
  failed: { label: 'Failed', tone: 'warn' },
};

const COLUMNS: readonly Column<Deposit>[] = [
  { key: 'at', header: 'When', cell: ({ created_at }) => <Time at={created_at} as="date-time" /> },
  {
    key: 'account',
    header: 'Account',
    cell: ({ account_id }) => (
      <Link href={pathWithId(PATHS.adminAccount, account_id)}>
        <code>{account_id}</code>
      </Link>
    ),
  },
  { key: 'amount', header: 'Amount', numeric: true, cell: ({ amount_micro_usd }) => <Money microUsd={amount_micro_usd} /> },
  { key: 'source', header: 'From', cell: ({ source }) => SOURCES[source] },
  {
    key: 'state',
    header: 'State',
    cell: ({ state, refunded_micro_usd, disputed_at }) => (
      <span className="row">
        <Badge tone={STATES[state].tone}>{STATES[state].label}</Badge>
        {refunded_micro_usd > 0 ? (
          <Badge tone="bad">
            Refunded <Money microUsd={refunded_micro_usd} />
          </Badge>
        ) : null}
        {disputed_at === null ? null : <Badge tone="bad">Disputed</Badge>}
      </span>
    ),
  },
  { key: 'id', header: 'ID', rowHeader: true, cell: ({ id }) => <code>{id}</code> },
];
