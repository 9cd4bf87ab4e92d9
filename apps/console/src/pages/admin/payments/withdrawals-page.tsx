/** `/admin/withdrawals`: requested and completed withdrawals. */
import { useState } from 'react';
import { PageHeader } from '../../../ui/display/page-header.js';
import { Segmented } from '../../../ui/forms/segmented.js';
import { useAdminWithdrawals } from '../queries.js';
import { EarningsConcentration } from './earnings-concentration.js';
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
  const { rows } = useAdminWithdrawals(filter, null);
  return (
    <>
      <PageHeader
        title="Withdrawals"
        about="Newest first. Amounts are already deducted from the balances."
        actions={<Segmented label="State" value={state} options={STATES} onValue={setState} />}
      />
      <div className="stack">
        <WithdrawalTable accountId={null} state={filter} />
        {/* StateChoice after the table above has its final height. */}
        {rows === undefined ? null : <EarningsConcentration />}
      </div>
    </>
  );
}
