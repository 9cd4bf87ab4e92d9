/** `InvitationsCard`: invites people by email, and lists invitations that are not accepted yet. */
import type { ConsoleInvitation, OrganisationRole } from '@inference/formats';
import { useMutation } from '@tanstack/react-query';
import { UserPlus } from 'lucide-react';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { useSettings } from '../../api/session.js';
import { ROLE_DESCRIPTIONS, ROLE_LABELS, rolesGivenBy } from '../../features/account/roles.js';
import { FormDialog } from '../../ui/dialogs/dialog.js';
import { Time } from '../../ui/display/figures.js';
import { Badge, Card } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field, Select } from '../../ui/forms/field.js';
import { useFormMutation } from '../../ui/forms/form.js';
import { ORGANISATION_PATH, useInvalidateOrganisation, useInvitations } from './queries.js';

const PATH = `${ORGANISATION_PATH}/invitations`;

/** `role`: role of the signed-in person, which limits the roles of new members. */
export function InvitationsCard({ role }: { readonly role: OrganisationRole }) {
  const invitations = useInvitations();
  const settings = useSettings();
  const [inviting, setInviting] = useState(false);
  const canMail = settings?.mail !== false;
  const columns: Column<ConsoleInvitation>[] = [
    { key: 'email', header: 'Email address', rowHeader: true, cell: ({ email }) => <span className="breakable">{email}</span> },
    { key: 'role', header: 'Role', cell: (one) => ROLE_LABELS[one.role] },
    { key: 'by', header: 'Invited by', cell: ({ invited_by }) => invited_by ?? 'Former member' },
    {
      key: 'expires',
      header: 'Expires',
      cell: ({ state, expires_at }) => (state === 'expired' ? <Badge tone="warn">Expired</Badge> : <Time at={expires_at} as="date" />),
    },
    { key: 'actions', header: <span className="visually-hidden">Actions</span>, cell: (one) => <InvitationActions invitation={one} /> },
  ];
  return (
    <Card
      title="Invitations"
      about={canMail ? undefined : 'This coordinator sends no email, so nobody can be invited.'}
      flush
      actions={
        canMail ? (
          <Button size="small" icon={<UserPlus size={16} aria-hidden="true" />} onClick={() => setInviting(true)}>
            Invite
          </Button>
        ) : undefined
      }
    >
      <Loaded query={invitations} subject="The invitations">
        <Table
          caption="List of invitations"
          columns={columns}
          rows={invitations.data}
          rowKey={({ id }) => id}
          empty={<p className="card-empty">No pending invitations.</p>}
          stacked
          loadingRows={1}
        />
      </Loaded>
      {inviting ? <InviteDialog role={role} onClose={() => setInviting(false)} /> : null}
    </Card>
  );
}

function InvitationActions({ invitation: { id, email } }: { readonly invitation: ConsoleInvitation }) {
  const invalidate = useInvalidateOrganisation();
  const toast = useToast();
  const path = `${PATH}/${encodeURIComponent(id)}`;
  const resend = useMutation({
    mutationFn: async () => {
      await api.post<ConsoleInvitation>(`${path}/resend`);
      await invalidate();
    },
    onSuccess: () => toast.success(`Invitation sent to ${email}`, 'The earlier link no longer works.'),
    onError: (error) => toast.failure('The invitation was not sent', error),
  });
  const revoke = useMutation({
    mutationFn: async () => {
      await api.delete(path);
      await invalidate();
    },
    onSuccess: () => toast.success('Invitation revoked'),
    onError: (error) => toast.failure('The invitation was not revoked', error),
  });
  return (
    <span className="row-actions">
      <Button size="small" busy={resend.isPending} aria-label={`Resend to ${email}`} onClick={() => resend.mutate()}>
        Resend
      </Button>
      <Button size="small" busy={revoke.isPending} aria-label={`Revoke invitation of ${email}`} onClick={() => revoke.mutate()}>
        Revoke
      </Button>
    </span>
  );
}

function InviteDialog({ role, onClose }: { readonly role: OrganisationRole; readonly onClose: () => void }) {
  const invalidate = useInvalidateOrganisation();
  const settings = useSettings();
  const toast = useToast();
  const form = useFormMutation({ email: '', role: 'developer' as OrganisationRole }, async (fields) => {
    await api.post<ConsoleInvitation>(PATH, { ...fields, email: fields.email.trim() });
    await invalidate();
    onClose();
    const where = settings?.mail_in_log
      ? 'In development mode the link is in the log of the coordinator.'
      : 'The link is valid for seven days.';
    toast.success(`Invitation sent to ${fields.email.trim()}`, where);
  });
  const chosen = form.watch('role');
  return (
    <FormDialog onClose={onClose} title="Invite a person" form={form} submit="Send invitation">
      <Field
        label="Email address"
        type="email"
        autoComplete="off"
        {...form.field('email', {
          required: 'Enter an email address.',
          pattern: { value: /^\s*\S+@\S+\.\S+\s*$/, message: 'Enter a valid email address.' },
        })}
      />
      <Select
        label="Role"
        hint={ROLE_DESCRIPTIONS[chosen]}
        options={rolesGivenBy(role).map((value) => ({ value, label: ROLE_LABELS[value] }))}
        {...form.field('role')}
      />
    </FormDialog>
  );
}
