/** `/admin/deposits`: what was deposited, by everybody. */
import { PageHeader } from '../../../ui/display/page-header.js';
import { DepositTable } from './deposit-table.js';

export function Page() {
  return (
    <>
      <PageHeader
        title="Deposits"
        about="Newest first. Refunds and disputes are flagged, and their accounts suspended: look at them, then reinstate the account or leave it. A deposit by hand is made on the page of the account."
      />
      <DepositTable accountId={null} />
    </>
  );
}
