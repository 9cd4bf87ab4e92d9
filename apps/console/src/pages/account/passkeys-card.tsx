/** `PasskeysCard`: lists, adds, renames and removes the account's passkeys. */
import type { ConsolePasskey, ConsolePasskeyList } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { FormDialog } from '../../ui/dialogs/dialog.js';
import { Time } from '../../ui/display/figures.js';
import { Badge, Card } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { useFormMutation } from '../../ui/forms/form.js';
import { CONFIRMING_PASSWORD_RULES, PasswordField } from './auth-card.js';
import { browserName } from './browser-name.js';
import { addPasskey, canUsePasskeys } from './web-authn.js';

const PASSKEYS_KEY = ['passkeys'] as const;
const NAME_RULES = { required: 'Enter a name.', maxLength: { value: 100, message: 'At most 100 characters.' } };

type OpenDialog = { readonly kind: 'add' } | { readonly kind: 'rename' | 'remove'; readonly passkey: ConsolePasskey } | null;

export function PasskeysCard() {
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const queryClient = useQueryClient();
  const passkeys = useQuery({
    queryKey: PASSKEYS_KEY,
    queryFn: async ({ signal }) => (await api.get<ConsolePasskeyList>('/console/v1/passkeys', { signal })).data,
  });
  const close = (): void => {
    setDialog(null);
    void queryClient.invalidateQueries({ queryKey: PASSKEYS_KEY });
  };
  const columns: Column<ConsolePasskey>[] = [
    {
      key: 'name',
      header: 'Name',
      rowHeader: true,
      cell: ({ name, synced }) => (
        <span className="inline">
          <span>{name}</span> {synced ? <Badge>Synced</Badge> : null}
        </span>
      ),
    },
    { key: 'added', header: 'Added', cell: ({ created_at }) => (created_at === null ? 'unknown' : <Time at={created_at} />) },
    { key: 'used', header: 'Last used', cell: ({ last_used_at }) => (last_used_at === null ? 'never' : <Time at={last_used_at} />) },
    {
      key: 'actions',
      header: <span className="visually-hidden">Actions</span>,
      cell: (passkey) => (
        <span className="row">
          <Button size="small" aria-label={`Rename ${passkey.name}`} onClick={() => setDialog({ kind: 'rename', passkey })}>
            Rename
          </Button>
          <Button size="small" aria-label={`Remove ${passkey.name}`} onClick={() => setDialog({ kind: 'remove', passkey })}>
            Remove
          </Button>
        </span>
      ),
    },
  ];
  return (
    <Card
      title="Passkeys"
      about={
        canUsePasskeys()
          ? 'Sign in with your fingerprint, face or a security key. A passkey replaces password and code.'
          : 'Passkeys need a browser that supports them, and a console opened by its name instead of an IP address.'
      }
      flush={(passkeys.data?.length ?? 0) > 0}
      actions={
        canUsePasskeys() ? (
          <Button size="small" onClick={() => setDialog({ kind: 'add' })}>
            Add passkey
          </Button>
        ) : undefined
      }
    >
      <Loaded query={passkeys} subject="Your passkeys">
        {passkeys.data?.length === 0 ? (
          <p>No passkeys yet.</p>
        ) : (
          <Table
            caption="List of passkeys"
            columns={columns}
            rows={passkeys.data}
            rowKey={({ id }) => id}
            empty={null}
            stacked
            loadingRows={1}
          />
        )}
      </Loaded>
      {dialog?.kind === 'add' ? <AddDialog onClose={close} /> : null}
      {dialog?.kind === 'rename' ? <RenameDialog passkey={dialog.passkey} onClose={close} /> : null}
      {dialog?.kind === 'remove' ? <RemoveDialog passkey={dialog.passkey} onClose={close} /> : null}
    </Card>
  );
}

function AddDialog({ onClose }: { readonly onClose: () => void }) {
  const toast = useToast();
  const form = useFormMutation({ name: browserName(navigator.userAgent), password: '' }, async ({ name, password }) => {
    await addPasskey({ name: name.trim(), password });
    toast.success('Passkey added');
    onClose();
  });
  return (
    <FormDialog onClose={onClose} title="Add a passkey" form={form} submit="Continue">
      <Field label="Name" {...form.field('name', NAME_RULES)} />
      <PasswordField label="Your password" {...form.field('password', CONFIRMING_PASSWORD_RULES)} />
    </FormDialog>
  );
}

interface PasskeyDialogProps {
  readonly passkey: ConsolePasskey;
  readonly onClose: () => void;
}

function RenameDialog({ passkey, onClose }: PasskeyDialogProps) {
  const form = useFormMutation({ name: passkey.name }, async ({ name }) => {
    await api.patch(`/console/v1/passkeys/${encodeURIComponent(passkey.id)}`, { name: name.trim() });
    onClose();
  });
  return (
    <FormDialog onClose={onClose} title="Rename passkey" form={form} submit="Rename">
      <Field label="Name" {...form.field('name', NAME_RULES)} />
    </FormDialog>
  );
}

function RemoveDialog({ passkey, onClose }: PasskeyDialogProps) {
  const toast = useToast();
  const form = useFormMutation({ password: '' }, async ({ password }) => {
    await api.post('/console/auth/passkey/delete-passkey', { id: passkey.id, password });
    toast.success('Passkey removed');
    onClose();
  });
  return (
    <FormDialog
      onClose={onClose}
      title={`Remove ${passkey.name}?`}
      description="It no longer signs in to your account. Your device may still list it."
      form={form}
      submit="Remove"
      danger
    >
      <PasswordField label="Your password" {...form.field('password', CONFIRMING_PASSWORD_RULES)} />
    </FormDialog>
  );
}
