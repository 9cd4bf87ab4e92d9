/** `/organisation`: members and settings of the active organisation. In the personal account: the list of the user's organisations. */
import type { ConsoleMembership, ConsoleOrganisation, Permission } from '@inference/formats';
import { Building2, Check, Minus, Plus } from 'lucide-react';
import { Link, useLocation, useSearch } from 'wouter';
import { useActiveAccount, useMe, usePermission, useSwitchAccount } from '../../api/session.js';
import { DownloadDataCard } from '../../features/account/download-data-card.js';
import { PERMISSION_LABELS, ROLE_LABELS } from '../../features/account/roles.js';
import { PATHS } from '../../routing/paths.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState, PageSkeleton } from '../../ui/feedback/placeholders.js';
import { Button } from '../../ui/forms/button.js';
import { CreateDialog } from './create-dialog.js';
import { InvitationsCard } from './invitations-card.js';
import { LogCard } from './log-card.js';
import { MembersCard } from './members-card.js';
import { useInvitations, useMembers, useOrganisation } from './queries.js';
import { DeleteCard, LeaveCard, NameCard } from './settings-cards.js';

export function Page() {
  const { organisation } = useActiveAccount();
  const [, navigate] = useLocation();
  const isCreating = new URLSearchParams(useSearch()).has('new');
  return (
    <>
      {organisation === null ? <Organisations /> : <Organisation organisation={organisation} />}
      {isCreating ? <CreateDialog onClose={() => navigate(PATHS.organisation, { replace: true })} /> : null}
    </>
  );
}

function Organisation({ organisation }: { readonly organisation: ConsoleMembership }) {
  const canManage = usePermission('organisation.manage');
  const canExport = usePermission('account.export');
  const canDelete = usePermission('organisation.delete');
  const queries = [useOrganisation(), useMembers(), useInvitations(canManage)];
  // Waits for all queries, so that cards do not move while others load.
  if (queries.some(({ isLoading }) => isLoading)) return <PageSkeleton />;
  return (
    <>
      <PageHeader title="Organisation" about={`${organisation.name} · your role: ${ROLE_LABELS[organisation.role]}`} />
      <div className="stack">
        <MembersCard role={organisation.role} />
        {canManage ? <InvitationsCard role={organisation.role} /> : null}
        <RolesCard />
        {canManage ? <NameCard organisation={organisation} /> : null}
        <LeaveCard organisation={organisation} />
        {canExport ? <DownloadDataCard accountId={organisation.id} accountName={organisation.name} /> : null}
        {canDelete ? <DeleteCard organisation={organisation} /> : null}
        {canManage ? <LogCard /> : null}
      </div>
    </>
  );
}

/** List of the user's organisations, shown in the personal account. */
function Organisations() {
  const { organisations } = useMe();
  const [, navigate] = useLocation();
  const switchAccount = useSwitchAccount();
  const create = (
    <Button kind="primary" icon={<Plus size={18} aria-hidden="true" />} onClick={() => navigate(`${PATHS.organisation}?new`)}>
      Create organisation
    </Button>
  );
  const columns: Column<ConsoleMembership>[] = [
    { key: 'name', header: 'Organisation', rowHeader: true, cell: ({ name }) => <span className="breakable">{name}</span> },
    { key: 'role', header: 'Your role', cell: ({ role }) => ROLE_LABELS[role] },
    {
      key: 'switch',
      header: <span className="visually-hidden">Switch</span>,
      cell: ({ id, name, suspended }) =>
        suspended ? (
          'Suspended'
        ) : (
          <Button size="small" aria-label={`Switch to ${name}`} onClick={() => switchAccount(id)}>
            Switch
          </Button>
        ),
    },
  ];
  return (
    <>
      <PageHeader title="Organisation" about="Share a balance, API keys, usage and machines with your team." actions={create} />
      <Card title="Your organisations" flush>
        <Table
          caption="Your organisations"
          columns={columns}
          rows={organisations}
          rowKey={({ id }) => id}
          stacked
          empty={
            <EmptyState icon={Building2} title="No organisations yet">
              Create one and invite people by email, or ask a member of an organisation for an invitation.{' '}
              <Link href="/docs/organisations">Roles and limits</Link>
            </EmptyState>
          }
        />
      </Card>
    </>
  );
}

const PERMISSIONS = Object.keys(PERMISSION_LABELS) as Permission[];

function RolesCard() {
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
