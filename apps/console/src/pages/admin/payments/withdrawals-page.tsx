/** `/admin/withdrawals`: requested and completed withdrawals, and owners whose earnings come mostly from one account. */
import type { AdminEarningsConcentration } from '@inference/formats';
import { useState } from 'react';
import { Link } from 'wouter';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { formatUsd, Money } from '../../../ui/display/figures.js';
import { Card, PageHeader } from '../../../ui/display/page.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { Loaded } from '../../../ui/feedback/error-state.js';
import { Segmented } from '../../../ui/forms/field.js';
import { useAdminWithdrawals, useEarningsConcentration } from '../queries.js';
import { WithdrawalTable } from './withdrawal-table.js';

const STATES = [
  { value: 'requested', label: 'To be paid' },
  { value: 'paid', label: 'Paid' },
  { value: 'rejected', label: 'Rejected' },
  { value: 'all', label: 'All' },
] as const;
type StateChoice = (typeof STATES)[number]['value'];

export function Page() {
  const [state, setState] = useState<StateChoice>('requested');
  const filter = state === 'all' ? null : state;
  const { data: rows } = useAdminWithdrawals(filter, null);
  return (
    <>
      <PageHeader
        title="Withdrawals"
        about="Newest first. Amounts are already deducted from the balances."
        actions={<Segmented label="State" value={state} options={STATES} onValue={setState} />}
      />
      <div className="stack">
        <WithdrawalTable accountId={null} state={filter} />
        {/* Rendered after the table above has its final height, so that the card does not move. */}
        {rows === undefined ? null : <EarningsConcentration />}
      </div>
    </>
  );
}

type Pair = AdminEarningsConcentration['data'][number];

/** Owners whose earnings come mostly from one account, which may be their own. */
function EarningsConcentration() {
  const concentration = useEarningsConcentration();
  const { data } = concentration;
  if (data === undefined)
    return (
      <Loaded query={concentration} subject="Earnings by payer">
        {null}
      </Loaded>
    );
  const about = `Owners with at least ${data.min_share_percent}% of their earnings, and ${formatUsd(data.min_micro_usd)}, from one account since ${data.from}. Review these before you pay them.`;
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
        <Link href={pathWithId(PATHS.adminProvider, provider_id ?? '')}>unclaimed machine</Link>
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
  return <Link href={pathWithId(PATHS.adminAccount, id)}>{email ?? (name === '' ? id : name)}</Link>;
}
