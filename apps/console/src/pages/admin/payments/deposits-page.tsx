/** `/admin/deposits`: deposits of all accounts. */
import { PageHeader } from '../../../ui/display/page.js';
import { DepositTable } from './deposit-table.js';

export function Page() {
  return (
    <>
      <PageHeader
        title="Deposits"
        about="Newest first. Refunds and disputes suspend the account. Review them, then decide whether to unsuspend it. Add deposits on the page of an account."
      />
      <DepositTable accountId={null} />
    </>
  );
}
