/** Owners who earn mostly from one account: the two may be the same person. */
import type { AdminEarningsConcentration } from '@inference/formats';
import { Link } from 'wouter';
import { Card } from '../../ui/card.js';
import { ErrorState } from '../../ui/error-state.js';
import { formatUsd, Money } from '../../ui/money.js';
import { type Column, Table } from '../../ui/table.js';
import { PATHS } from '../paths.js';
import { useEarningsConcentration } from './queries.js';

type Pair = AdminEarningsConcentration['data'][number];

export function EarningsConcentration() {
  const { data, error, refetch } = useEarningsConcentration();
  if (error !== null && data === undefined) {
    return <ErrorState what="Earnings by payer" error={error} onRetry={() => void refetch()} />;
  }
  if (data === undefined) return null;
  const about = `Owners with at least ${data.min_share_percent}% of their earnings, and ${formatUsd(data.min_micro_usd)}, from one account since ${data.from}. Check these before you pay them.`;
  return (
    <Card title="Earnings from one payer" about={about} flush>
      <Table
        caption="Owners and the account that pays most of their earnings"
        columns={COLUMNS}
        rows={data.data}
        rowKey={({ owner, provider_id, payer }) => `${owner?.id ?? provider_id} ${payer.id}`}
        empty={<p className="card-empty">No owner earns mostly from one account.</p>}
        stacked
      />
    </Card>
  );
}

const COLUMNS: readonly Column<Pair>[] = [
  {
    key: 'owner',
    header: 'Owner',
    rowHeader: true,
    cell: ({ owner, provider_id }) =>
      owner === null ? (
        <Link href={PATHS.adminProvider.replace(':id', provider_id ?? '')}>unclaimed machine</Link>
      ) : (
        <AccountLink account={owner} />
      ),
  },
  { key: 'payer', header: 'Payer', cell: ({ payer }) => <AccountLink account={payer} /> },
  { key: 'earned', header: 'Earned from payer', numeric: true, cell: ({ earned_micro_usd }) => <Money microUsd={earned_micro_usd} /> },
  { key: 'share', header: 'Of owner’s earnings', numeric: true, cell: ({ owner_share_percent }) => `${owner_share_percent}%` },
  { key: 'payer-share', header: 'Of payer’s spending', numeric: true, cell: ({ payer_share_percent }) => `${payer_share_percent}%` },
];

function AccountLink({ account: { id, name, email } }: { readonly account: Pair['payer'] }) {
  return <Link href={PATHS.adminAccount.replace(':id', id)}>{email ?? (name === '' ? id : name)}</Link>;
}
