/** `RolesCard`: table of the permissions of each role. */
import type { ConsoleOrganisation, Permission } from '@inference/formats';
import { Check, Minus } from 'lucide-react';
import { PERMISSION_LABELS, ROLE_LABELS } from '../../features/account/roles.js';
import { Card } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { useOrganisation } from './queries.js';

const PERMISSIONS = Object.keys(PERMISSION_LABELS) as Permission[];

export function RolesCard() {
  const organisation = useOrganisation();
  return (
    <Card title="Roles" about="Only owners add, change or remove owners." flush>
      <Loaded query={organisation} subject="The roles">
        <Table
          caption="Permissions of each role"
          columns={columnsOf(organisation.data?.roles ?? [])}
          rows={organisation.data === undefined ? undefined : PERMISSIONS}
          rowKey={(permission) => permission}
          empty={null}
          loadingRows={PERMISSIONS.length}
        />
      </Loaded>
    </Card>
  );
}

function columnsOf(roles: ConsoleOrganisation['roles']): Column<Permission>[] {
  return [
    { key: 'permission', header: 'Permission', rowHeader: true, cell: (permission) => PERMISSION_LABELS[permission] },
    ...roles.map(
      ({ role, permissions }): Column<Permission> => ({
        key: role,
        header: ROLE_LABELS[role],
        cell: (permission) =>
          permissions.includes(permission) ? <Check size={16} aria-label="Yes" /> : <Minus size={16} className="muted" aria-label="No" />,
      }),
    ),
  ];
}
