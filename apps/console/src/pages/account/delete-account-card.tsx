/** Deletes the account after asking for the password. Cannot be undone. */
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api } from '../../api/api-client.js';
import { useRefreshSession } from '../../api/session.js';
import { useBalance } from '../../features/account/balance.js';
import { PATHS } from '../../routing/paths.js';
import { Dialog, DialogActions } from '../../ui/dialogs/dialog.js';
import { formatUsd } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';

export function DeleteAccountCard() {
  const [open, setOpen] = useState(false);
  return (
    <Card
      title="Delete account"
      about="API keys stop working immediately, and your name and email address are erased. This cannot be undone."
    >
      <Button kind="danger" onClick={() => setOpen(true)}>
        Delete account
      </Button>
      <Dialog open={open} onOpenChange={setOpen} title="Delete your account?">
        <DeleteForm onCancel={() => setOpen(false)} />
      </Dialog>
    </Card>
  );
}

function DeleteForm({ onCancel }: { readonly onCancel: () => void }) {
  const { data: balance } = useBalance();
  const refreshSession = useRefreshSession();
  const toast = useToast();
  const [, navigate] = useLocation();
  const { register, errors, onSubmit, isPending, error } = useFormMutation({ password: '' }, async (fields) => {
    await api.post('/console/auth/delete-user', fields);
    await refreshSession();
    navigate(PATHS.network);
    toast.success('Account deleted');
  });
  const remainingMicroUsd = balance?.balance_micro_usd ?? 0;
  return (
    <Form onSubmit={onSubmit} error={error}>
      {remainingMicroUsd > 0 ? (
        <p>
          Your balance of <strong>{formatUsd(remainingMicroUsd)}</strong> will be lost. Withdraw your earnings first.
        </p>
      ) : null}
      <Field
        label="Your password"
        type="password"
        autoComplete="current-password"
        error={errors.password?.message}
        {...register('password', { required: 'Enter your password to continue.' })}
      />
      <DialogActions>
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" kind="danger" busy={isPending}>
          Delete permanently
        </Button>
      </DialogActions>
    </Form>
  );
}
