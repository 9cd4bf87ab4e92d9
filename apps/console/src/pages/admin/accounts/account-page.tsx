/** `/admin/accounts/:id`: balance, machines, members and history of an account, with actions for operators. */
import type { AdminAccountView, AdminMember } from '@inference/formats';
import { Link, useParams } from 'wouter';
import { LoadedPage } from '../../../api/loaded-page.js';
import { ROLE_LABELS } from '../../../features/account/roles.js';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { Money, Time } from '../../../ui/display/figures.js';
import { Card, PageHeader, Stat, Stats } from '../../../ui/display/page.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { LinkButton } from '../../../ui/forms/button.js';
import { DepositTable } from '../payments/deposit-table.js';
import { WithdrawalTable } from '../payments/withdrawal-table.js';
import { useAccount } from '../queries.js';
import { AuditLog } from '../system/audit-log.js';
import { AccountActions } from './account-actions.js';
import { AccountBadges } from './account-badges.js';

export function Page() {
  const { id = '' } = useParams();
  const notFound = (
    <EmptyState level={1} title="Account not found" action={<LinkButton href={PATHS.adminAccounts}>All accounts</LinkButton>}>
      Check the address.
    </EmptyState>
  );
  return <LoadedPage query={useAccount(id)} subject="The account" notFound={notFound} page={(account) => <Account account={account} />} />;
}

const MEMBERS: readonly Column<AdminMember>[] = [
  {
    key: 'email',
    header: 'Email address',
    rowHeader: true,
    cell: ({ user_id, email }) => <Link href={pathWithId(PATHS.adminAccount, user_id)}>{email}</Link>,
  },
  { key: 'name', header: 'Name', cell: ({ name }) => name },
  { key: 'role', header: 'Role', cell: ({ role }) => ROLE_LABELS[role] },
  { key: 'joined', header: 'Joined', cell: ({ joined_at }) => <Time at={joined_at} as="date" /> },
];

function Account({ account }: { readonly account: AdminAccountView }) {
  return (
    <>
      <PageHeader
        title={account.email ?? (account.name === '' ? 'Account' : account.name)}
        about={
          <span className="row">
            <AccountBadges account={account} />
            {account.email === null ? null : <span>{account.name}</span>}
            <span>
              created <Time at={account.created_at} as="date" />
            </span>
            <code>{account.id}</code>
          </span>
        }
        actions={<AccountActions account={account} />}
      />
      <div className="stack">
        <Stats>
          <Stat label="Balance" value={<Money microUsd={account.balance_micro_usd} />} />
          <Stat label="Reserved for running requests" value={<Money microUsd={account.reserved_micro_usd} />} />
          <Stat label="Available to withdraw" value={<Money microUsd={account.withdrawable_micro_usd} />} />
          <Stat label="Pending earnings" value={<Money microUsd={account.pending_micro_usd} />} />
          <Stat label="Two-factor authentication" value={account.two_factor_enabled ? 'Enabled' : 'Off'} />
          <Stat label="Passkeys" value={account.passkey_count} />
          <Stat label="Machines" value={account.machines.length} />
        </Stats>
        {account.machines.length === 0 ? null : (
          <Card title="Machines">
            <ul className="id-list">
              {account.machines.map((id) => (
                <li key={id}>
                  <Link href={pathWithId(PATHS.adminProvider, id)}>
                    <code>{id}</code>
                  </Link>
                </li>
              ))}
            </ul>
          </Card>
        )}
        {account.members.length === 0 ? null : (
          <Card title="Members" flush>
            <Table
              caption="Members of the organisation"
              columns={MEMBERS}
              rows={account.members}
              rowKey={({ user_id }) => user_id}
              empty={null}
              stacked
            />
          </Card>
        )}
        <DepositTable title="Deposits" accountId={account.id} />
        <WithdrawalTable title="Withdrawals" accountId={account.id} state={null} />
        <AuditLog title="Audit log" subject={account.id} />
      </div>
    </>
  );
}
