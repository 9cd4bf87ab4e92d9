/** The end of an account, which asks for the password and cannot be taken back. */
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { useLocation } from 'wouter';
import { api } from '../../api/api-client.js';
import { useSessionChanged } from '../../api/session.js';
import { useBalance } from '../../features/account/balance.js';
import { PATHS } from '../../routing/paths.js';
import { Dialog, DialogActions } from '../../ui/dialogs/dialog.js';
import { Card } from '../../ui/display/card.js';
import { formatUsd } from '../../ui/display/money.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';

export function DeleteAccount() {
  const [open, setOpen] = useState(false);
  return (
    <Card title="Delete the account" about="Keys stop at once, and the name and e-mail address are forgotten. This cannot be undone.">
      <Button kind="danger" onClick={() => setOpen(true)}>
        Delete account
      </Button>
      <Dialog open={open} onOpenChange={setOpen} title="Delete the account for good?">
        <DeleteForm onCancel={() => setOpen(false)} />
      </Dialog>
    </Card>
  );
}

function DeleteForm({ onCancel }: { readonly onCancel: () => void }) {
  const { data: balance } = useBalance();
  const changed = useSessionChanged();
  const toast = useToast();
  const [, navigate] = useLocation();
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState } = useForm({ defaultValues: { password: '' } });
  const remove = async ({ password }: { password: string }): Promise<void> => {
    setProblem(null);
    try {
      await api.post('/console/auth/delete-user', { password });
      await changed();
      navigate(PATHS.network);
      toast.success('The account is deleted');
    } catch (error) {
      setProblem(error);
    }
  };
  const left = balance?.balance_micro_usd ?? 0;
  return (
    <form className="form" noValidate onSubmit={(event) => void handleSubmit(remove)(event)}>
      {left > 0 ? (
        <p>
          <strong>{formatUsd(left)}</strong> is left on the balance and will be lost. Withdraw earnings first.
        </p>
      ) : null}
      {problem === null ? null : <ErrorNote error={problem} />}
      <Field
        label="Your password"
        type="password"
        autoComplete="current-password"
        error={formState.errors.password?.message}
        {...register('password', { required: 'Type your password to go on.' })}
      />
      <DialogActions>
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" kind="danger" busy={formState.isSubmitting}>
          Delete for good
        </Button>
      </DialogActions>
    </form>
  );
}
