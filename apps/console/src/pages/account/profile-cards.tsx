/** Cards of the account page with one form each: name, e-mail address, password. */
import type { ConsoleMe } from '@inference/formats';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { api } from '../../api/api-client.js';
import { useSessionChanged } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { Badge } from '../../ui/display/badge.js';
import { Card } from '../../ui/display/card.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { CheckField, Field } from '../../ui/forms/field.js';
import { MailNote } from './mail-note.js';

export function NameCard({ me }: { readonly me: ConsoleMe }) {
  const changed = useSessionChanged();
  const toast = useToast();
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState, reset } = useForm({ defaultValues: { name: me.name } });
  const save = async ({ name }: { name: string }): Promise<void> => {
    setProblem(null);
    try {
      await api.post('/console/auth/update-user', { name: name.trim() });
      await changed();
      reset({ name: name.trim() });
      toast.success('Your name is changed');
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Card title="Name">
      <form className="form form-row" noValidate onSubmit={(event) => void handleSubmit(save)(event)}>
        {problem === null ? null : <ErrorNote error={problem} />}
        <Field
          label="Name"
          hideLabel
          autoComplete="name"
          error={formState.errors.name?.message}
          {...register('name', { required: 'A name is needed.', maxLength: { value: 100, message: 'At most 100 characters.' } })}
        />
        <Button type="submit" busy={formState.isSubmitting} disabled={!formState.isDirty}>
          Save
        </Button>
      </form>
    </Card>
  );
}

export function EmailCard({ me, mail }: { readonly me: ConsoleMe; readonly mail: boolean }) {
  const [mailed, setMailed] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const send = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await api.post('/console/auth/send-verification-email', { email: me.email, callbackURL: PATHS.account });
      setMailed(true);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card title="E-mail address">
      <div className="stack-small">
        <p className="inline">
          <span>{me.email}</span> {me.email_verified ? <Badge tone="good">Confirmed</Badge> : <Badge tone="warn">Not confirmed</Badge>}
        </p>
        {problem === null ? null : <ErrorNote error={problem} />}
        {mailed ? <MailNote sent={`We sent a link to ${me.email}. Open it to confirm the address.`} /> : null}
        {me.email_verified || mailed || !mail ? null : (
          <div>
            <Button busy={busy} onClick={() => void send()}>
              Send a confirming link
            </Button>
          </div>
        )}
      </div>
    </Card>
  );
}

interface PasswordForm {
  readonly currentPassword: string;
  readonly newPassword: string;
  readonly revokeOtherSessions: boolean;
}

const EMPTY: PasswordForm = { currentPassword: '', newPassword: '', revokeOtherSessions: true };

export function PasswordCard({ min }: { readonly min: number }) {
  const toast = useToast();
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState, reset } = useForm<PasswordForm>({ defaultValues: EMPTY });
  const change = async (form: PasswordForm): Promise<void> => {
    setProblem(null);
    try {
      await api.post('/console/auth/change-password', form);
      reset(EMPTY);
      toast.success('The new password holds');
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Card title="Password">
      <form className="form" noValidate onSubmit={(event) => void handleSubmit(change)(event)}>
        {problem === null ? null : <ErrorNote error={problem} />}
        <Field
          label="Current password"
          type="password"
          autoComplete="current-password"
          error={formState.errors.currentPassword?.message}
          {...register('currentPassword', { required: 'Type the password that holds now.' })}
        />
        <Field
          label="New password"
          type="password"
          autoComplete="new-password"
          error={formState.errors.newPassword?.message}
          hint={`At least ${min} characters.`}
          {...register('newPassword', {
            required: 'Choose a password.',
            minLength: { value: min, message: `A password has at least ${min} characters.` },
          })}
        />
        <CheckField label="Sign out everywhere else" {...register('revokeOtherSessions')} />
        <div>
          <Button type="submit" busy={formState.isSubmitting}>
            Change password
          </Button>
        </div>
      </form>
    </Card>
  );
}
