/** `NameCard`, `EmailCard` and `PasswordCard` of the account page. */
import type { ConsoleMe } from '@inference/formats';
import { useMutation } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';
import { useRefreshSession } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { Badge, Card } from '../../ui/display/page.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { CheckField, Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { MailNote, NewPasswordField, newPasswordRules, PasswordField } from './auth-card.js';

export function NameCard({ me }: { readonly me: ConsoleMe }) {
  const refreshSession = useRefreshSession();
  const toast = useToast();
  const { field, formState, onSubmit, isPending, error } = useFormMutation({ name: me.name }, async (fields, { reset }) => {
    const name = fields.name.trim();
    await api.post('/console/auth/update-user', { name });
    await refreshSession();
    reset({ name });
    toast.success('Name updated');
  });
  return (
    <Card title="Name">
      <Form row onSubmit={onSubmit} error={error}>
        <Field
          label="Name"
          hideLabel
          autoComplete="name"
          {...field('name', { required: 'Enter a name.', maxLength: { value: 100, message: 'At most 100 characters.' } })}
        />
        <Button type="submit" busy={isPending} disabled={!formState.isDirty}>
          Save
        </Button>
      </Form>
    </Card>
  );
}

export function EmailCard({ me, canSendMail }: { readonly me: ConsoleMe; readonly canSendMail: boolean }) {
  const { mutate, isPending, isSuccess, error } = useMutation({
    mutationFn: () => api.post('/console/auth/send-verification-email', { email: me.email, callbackURL: PATHS.account }),
  });
  return (
    <Card title="Email address">
      <div className="stack-small">
        <p className="inline">
          <span>{me.email}</span> {me.email_verified ? <Badge tone="good">Verified</Badge> : <Badge tone="warn">Not verified</Badge>}
        </p>
        <ErrorNote error={error} />
        {isSuccess ? <MailNote sent={`We sent a link to ${me.email}. Open it to verify the address.`} /> : null}
        {me.email_verified || isSuccess || !canSendMail ? null : (
          <div>
            <Button busy={isPending} onClick={() => mutate()}>
              Send verification email
            </Button>
          </div>
        )}
      </div>
    </Card>
  );
}

const EMPTY = { currentPassword: '', newPassword: '', revokeOtherSessions: true };

export function PasswordCard({ minCharacters }: { readonly minCharacters: number }) {
  const toast = useToast();
  const { field, register, onSubmit, isPending, error } = useFormMutation(EMPTY, async (fields, { reset }) => {
    await api.post('/console/auth/change-password', fields);
    reset(EMPTY);
    toast.success('Password changed');
  });
  return (
    <Card title="Password">
      <Form onSubmit={onSubmit} error={error}>
        <PasswordField label="Current password" {...field('currentPassword', { required: 'Enter your current password.' })} />
        <NewPasswordField label="New password" minCharacters={minCharacters} {...field('newPassword', newPasswordRules(minCharacters))} />
        <CheckField label="Sign out of all other sessions" {...register('revokeOtherSessions')} />
        <div>
          <Button type="submit" busy={isPending}>
            Change password
          </Button>
        </div>
      </Form>
    </Card>
  );
}
