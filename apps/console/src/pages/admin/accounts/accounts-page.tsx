/** `/admin/accounts`: list of accounts, with a search by name, email address or id. */
import type { AdminAccount } from '@inference/formats';
import { useDeferredValue, useState } from 'react';
import { Link } from 'wouter';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { Time } from '../../../ui/display/figures.js';
import { PageHeader } from '../../../ui/display/page.js';
import { type Column, TableCard } from '../../../ui/display/table.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { Field } from '../../../ui/forms/field.js';
import { useAccounts } from '../queries.js';
import { AccountBadges } from './account-badges.js';

export function Page() {
  const [text, setText] = useState('');
  const accounts = useAccounts(useDeferredValue(text.trim()));
  return (
    <>
      <PageHeader title="Accounts" about="Newest first." />
      <TableCard
        subject="The accounts"
        list={accounts}
        caption="Accounts"
        columns={COLUMNS}
        rowKey={({ id }) => id}
        empty={<EmptyState title="No accounts match">Search for part of a name or email address.</EmptyState>}
        stacked
      >
        <div className="filters">
          <Field
            label="Search"
            hint="Part of a name or email address, or a complete ID"
            type="search"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </div>
      </TableCard>
    </>
  );
}

const COLUMNS: readonly Column<AdminAccount>[] = [
  {
    key: 'email',
    header: 'Account',
    rowHeader: true,
    cell: ({ id, email, name }) => (
      <Link className="breakable" href={pathWithId(PATHS.adminAccount, id)}>
        {email ?? (name === '' ? id : name)}
      </Link>
    ),
  },
  { key: 'name', header: 'Name', cell: ({ name }) => <span className="breakable">{name || '—'}</span> },
  { key: 'state', header: 'State', cell: (account) => <AccountBadges account={account} /> },
  { key: 'created', header: 'Created', cell: ({ created_at }) => <Time at={created_at} as="date" /> },
];
