/** `MembersCard`: members and their roles. Owners and admins can change roles and remove members. */
import type { ConsoleMember, ConsoleMemberList, ConsoleRemovedMember, OrganisationRole } from '@inference/formats';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { useMe, usePermission, useRefreshSession } from '../../api/session.js';
import { ROLE_LABELS, rolesGivenBy } from '../../features/account/roles.js';
import { ConfirmDialog } from '../../ui/dialogs/dialog.js';
import { formatCount, Time } from '../../ui/display/figures.js';
import { Badge, Card } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { CheckField, Select } from '../../ui/forms/field.js';
import { ORGANISATION_PATH, useInvalidateOrganisation, useMembers } from './queries.js';

function memberPath(userId: string): string {
  return `${ORGANISATION_PATH}/members/${encodeURIComponent(userId)}`;
}

/** `role`: role of the signed-in person, which limits the editable members. */
export function MembersCard({ role }: { readonly role: OrganisationRole }) {
  const members = useMembers();
  const canManage = usePermission('organisation.manage');
  const me = useMe();
  const [removing, setRemoving] = useState<ConsoleMember | null>(null);
  const assignableRoles = rolesGivenBy(role);
  const mayChange = (member: ConsoleMember): boolean => canManage && assignableRoles.includes(member.role);
  const columns: Column<ConsoleMember>[] = [
    {
      key: 'name',
      header: 'Name',
      rowHeader: true,
      cell: ({ user_id, name }) => (
        <span className="inline">
          <span className="breakable">{name}</span> {user_id === me.id ? <Badge tone="accent">You</Badge> : null}
        </span>
      ),
    },
    { key: 'email', header: 'Email address', cell: ({ email }) => <span className="breakable">{email}</span> },
    {
      key: 'role',
      header: 'Role',
      cell: (member) => (mayChange(member) ? <RoleSelect member={member} roles={assignableRoles} /> : ROLE_LABELS[member.role]),
    },
    { key: 'joined', header: 'Joined', cell: ({ joined_at }) => <Time at={joined_at} as="date" /> },
    {
      key: 'actions',
      header: <span className="visually-hidden">Actions</span>,
      cell: (member) =>
        mayChange(member) && member.user_id !== me.id ? (
          <Button size="small" aria-label={`Remove ${member.name}`} onClick={() => setRemoving(member)}>
            Remove
          </Button>
        ) : null,
    },
  ];
  return (
    <Card title="Members" flush>
      <Loaded query={members} subject="The members">
        <Table
          caption="List of members"
          columns={columns}
          rows={members.data}
          rowKey={({ user_id }) => user_id}
          empty={null}
          stacked
          loadingRows={2}
        />
      </Loaded>
      {removing === null ? null : <RemoveDialog member={removing} onClose={() => setRemoving(null)} />}
    </Card>
  );
}

function RoleSelect({ member, roles }: { readonly member: ConsoleMember; readonly roles: readonly OrganisationRole[] }) {
  const invalidate = useInvalidateOrganisation();
  const refreshSession = useRefreshSession();
  const me = useMe();
  const toast = useToast();
  const { mutate, isPending } = useMutation({
    mutationFn: async (role: OrganisationRole) => {
      await api.patch<ConsoleMemberList>(memberPath(member.user_id), { role });
      // The session contains the permissions of the user, so a change of the user's own role refetches the session.
      await (member.user_id === me.id ? refreshSession() : invalidate());
    },
    onSuccess: (_, role) => toast.success(`${member.name} is now ${ROLE_LABELS[role].toLowerCase()}`),
    onError: (error) => toast.failure('The role was not changed', error),
  });
  return (
    <Select
      label={`Role of ${member.name}`}
      hideLabel
      value={member.role}
      disabled={isPending}
      options={roles.map((value) => ({ value, label: ROLE_LABELS[value] }))}
      onValue={(role) => mutate(role)}
    />
  );
}

function RemoveDialog({ member, onClose }: { readonly member: ConsoleMember; readonly onClose: () => void }) {
  const invalidate = useInvalidateOrganisation();
  const toast = useToast();
  const [revokeKeys, setRevokeKeys] = useState(member.key_count > 0);
  const { key_count: keys } = member;
  const remove = async (): Promise<void> => {
    const query = { revoke_keys: revokeKeys || undefined };
    const { revoked_keys } = await api.delete<ConsoleRemovedMember>(memberPath(member.user_id), { query });
    await invalidate();
    toast.success(
      `${member.name} removed`,
      revoked_keys === 0 ? undefined : revoked_keys === 1 ? '1 API key revoked.' : `${formatCount(revoked_keys)} API keys revoked.`,
    );
  };
  return (
    <ConfirmDialog onClose={onClose} title={`Remove ${member.name}?`} confirm="Remove member" onConfirm={remove}>
      <p>{member.email} loses access immediately. To return, the person needs a new invitation.</p>
      {keys === 0 ? null : (
        <CheckField
          label={`Also revoke the ${keys === 1 ? 'API key' : `${formatCount(keys)} API keys`} that ${member.name} created`}
          hint="Keys that you do not revoke continue to work, also for the removed person."
          checked={revokeKeys}
          onChange={(event) => setRevokeKeys(event.target.checked)}
        />
      )}
    </ConfirmDialog>
  );
}
