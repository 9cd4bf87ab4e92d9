/** `NameCard`, `LeaveCard` and `DeleteCard`: rename, leave and delete the organisation. */
import type { ConsoleMembership, ConsoleOrganisation } from '@inference/formats';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { useMe, useRefreshSession, useSwitchAccount } from '../../api/session.js';
import { useBalance } from '../../features/account/balance.js';
import { DeletionNote } from '../../features/account/deletion-note.js';
import { ConfirmDialog, FormDialog } from '../../ui/dialogs/dialog.js';
import { formatUsd } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { NAME_RULES } from './create-dialog.js';
import { ORGANISATION_PATH, useMembers } from './queries.js';

interface SettingsCardProps {
  readonly organisation: ConsoleMembership;
}

export function NameCard({ organisation }: SettingsCardProps) {
  const refreshSession = useRefreshSession();
  const toast = useToast();
  const form = useFormMutation({ name: organisation.name }, async ({ name }) => {
    await api.patch<ConsoleOrganisation>(ORGANISATION_PATH, { name: name.trim() });
    await refreshSession();
    toast.success('Name saved');
  });
  return (
    <Card title="Name">
      <Form onSubmit={form.onSubmit} error={form.error}>
        <Field label="Organisation name" autoComplete="organization" {...form.field('name', NAME_RULES)} />
        <div>
          <Button type="submit" busy={form.isPending}>
            Save
          </Button>
        </div>
      </Form>
    </Card>
  );
}

export function LeaveCard({ organisation }: SettingsCardProps) {
  const [open, setOpen] = useState(false);
  const { data: members } = useMembers();
  const me = useMe();
  const finish = useLeave();
  const isOnlyOwner =
    organisation.role === 'owner' && members?.some(({ role, user_id }) => role === 'owner' && user_id !== me.id) === false;
  const leave = async (): Promise<void> => {
    await api.post(`${ORGANISATION_PATH}/leave`);
    await finish(`You left ${organisation.name}`);
  };
  return (
    <Card
      title="Leave organisation"
      about={
        isOnlyOwner
          ? 'You are the only owner. Make another member an owner before you leave, or delete the organisation.'
          : 'You lose access immediately. API keys that you created keep working for the organisation.'
      }
    >
      <Button disabled={isOnlyOwner} onClick={() => setOpen(true)}>
        Leave organisation
      </Button>
      <ConfirmDialog open={open} onClose={() => setOpen(false)} title={`Leave ${organisation.name}?`} confirm="Leave" onConfirm={leave}>
        <p>To return, you need a new invitation.</p>
      </ConfirmDialog>
    </Card>
  );
}

export function DeleteCard({ organisation }: SettingsCardProps) {
  const [open, setOpen] = useState(false);
  return (
    <Card
      title="Delete organisation"
      about="API keys stop working immediately, machines are unlinked, members lose access, and names and log are erased. This cannot be undone."
    >
      <Button kind="danger" onClick={() => setOpen(true)}>
        Delete organisation
      </Button>
      {open ? <DeleteDialog organisation={organisation} onClose={() => setOpen(false)} /> : null}
    </Card>
  );
}

function DeleteDialog({ organisation, onClose }: SettingsCardProps & { readonly onClose: () => void }) {
  const { data: balance } = useBalance();
  const finish = useLeave();
  const form = useFormMutation({ name: '' }, async () => {
    await api.delete(ORGANISATION_PATH);
    await finish(`${organisation.name} deleted`);
  });
  const remainingMicroUsd = balance?.balance_micro_usd ?? 0;
  return (
    <FormDialog onClose={onClose} title={`Delete ${organisation.name}?`} form={form} submit="Delete permanently" danger>
      {remainingMicroUsd > 0 ? (
        <p>
          Its balance of <strong>{formatUsd(remainingMicroUsd)}</strong> will be lost. Withdraw earnings first.
        </p>
      ) : null}
      <DeletionNote />
      <Field
        label="Name of the organisation"
        hint={`Enter “${organisation.name}” to confirm.`}
        autoComplete="off"
        {...form.field('name', { validate: (name) => name.trim() === organisation.name || 'Enter the name as shown.' })}
      />
    </FormDialog>
  );
}

/** Returns a function that switches this tab to the personal account and shows a message, for use after the membership ended. */
function useLeave(): (done: string) => Promise<void> {
  const switchAccount = useSwitchAccount();
  const refreshSession = useRefreshSession();
  const toast = useToast();
  return async (done) => {
    switchAccount(null);
    await refreshSession();
    toast.success(done);
  };
}
