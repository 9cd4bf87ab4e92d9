/** `DeleteAccountCard`: card that deletes the account after asking for the password. */
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api } from '../../api/api-client.js';
import { useRefreshSession } from '../../api/session.js';
import { useBalance } from '../../features/account/balance.js';
import { DeletionNote } from '../../features/account/deletion-note.js';
import { PATHS } from '../../routing/paths.js';
import { FormDialog } from '../../ui/dialogs/dialog.js';
import { formatUsd } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { useFormMutation } from '../../ui/forms/form.js';
import { CONFIRMING_PASSWORD_RULES, PasswordField } from './auth-card.js';

export function DeleteAccountCard() {
  const [open, setOpen] = useState(false);
  return (
    <Card
      title="Delete account"
      about="API keys and sessions end immediately, machines are unlinked, and everything that names you is erased. This cannot be undone."
    >
      <Button kind="danger" onClick={() => setOpen(true)}>
        Delete account
      </Button>
      {open ? <DeleteDialog onClose={() => setOpen(false)} /> : null}
    </Card>
  );
}

function DeleteDialog({ onClose }: { readonly onClose: () => void }) {
  const { data: balance } = useBalance();
  const refreshSession = useRefreshSession();
  const toast = useToast();
  const [, navigate] = useLocation();
  const form = useFormMutation({ password: '' }, async (fields) => {
    await api.post('/console/auth/delete-user', fields);
    await refreshSession();
    navigate(PATHS.home);
    toast.success('Account deleted');
  });
  const remainingMicroUsd = balance?.balance_micro_usd ?? 0;
  return (
    <FormDialog onClose={onClose} title="Delete your account?" form={form} submit="Delete permanently" danger>
      {remainingMicroUsd > 0 ? (
        <p>
          Your balance of <strong>{formatUsd(remainingMicroUsd)}</strong> will be lost. Withdraw your earnings first.
        </p>
      ) : null}
      <DeletionNote />
      <PasswordField label="Your password" {...form.field('password', CONFIRMING_PASSWORD_RULES)} />
    </FormDialog>
  );
}
