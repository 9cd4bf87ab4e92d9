/** `/reset-password`: requests a link by e-mail. Opened from the link (`?token=`), the page sets the new password. */
import { useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { useSettings } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { Note } from '../../ui/feedback/note.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { AuthCard, EMAIL_PATTERN, MailNote, NewPasswordField, newPasswordRules } from './auth-card.js';

export function Page() {
  const query = new URLSearchParams(useSearch());
  const token = query.get('token');
  if (token !== null && token !== '') return <NewPassword token={token} />;
  return <RequestLink expired={query.has('error')} />;
}

function RequestLink({ expired }: { readonly expired: boolean }) {
  const settings = useSettings();
  const [mailed, setMailed] = useState<string | null>(null);
  const { field, onSubmit, isPending, error } = useFormMutation({ email: '' }, async ({ email }) => {
    await api.post('/console/auth/request-password-reset', { email, redirectTo: PATHS.resetPassword });
    setMailed(email);
  });
  return (
    <AuthCard
      title="Reset your password"
      about="We will email you a link to choose a new password."
      footer={<Link href={PATHS.signIn}>Back to sign in</Link>}
    >
      {mailed !== null ? (
        <MailNote sent={`If an account exists for ${mailed}, we sent a link there. It works once, within one hour.`} />
      ) : settings?.mail === false ? (
        <Note tone="warn" title="This coordinator cannot send email.">
          <p>Ask its operator to set up email, or to reset your password.</p>
        </Note>
      ) : (
        <Form onSubmit={onSubmit} error={error}>
          {expired ? (
            <Note tone="warn" title="This link is no longer valid.">
              <p>Links work once, within one hour. Request a new one.</p>
            </Note>
          ) : null}
          <Field
            label="Email address"
            type="email"
            autoComplete="username"
            {...field('email', { required: 'Enter your email address.', pattern: EMAIL_PATTERN })}
          />
          <Button type="submit" kind="primary" busy={isPending}>
            Send reset link
          </Button>
        </Form>
      )}
    </AuthCard>
  );
}

function NewPassword({ token }: { readonly token: string }) {
  const settings = useSettings();
  const min = settings?.min_password_length ?? 10;
  const [, navigate] = useLocation();
  const toast = useToast();
  const { field, onSubmit, isPending, error } = useFormMutation({ newPassword: '' }, async ({ newPassword }) => {
    await api.post('/console/auth/reset-password', { token, newPassword });
    toast.success('Password changed', 'All sessions have been signed out. Passkeys still sign in: review them under Account.');
    navigate(PATHS.signIn);
  });
  return (
    <AuthCard title="Choose a new password" footer={<Link href={PATHS.resetPassword}>Request another link</Link>}>
      <Form onSubmit={onSubmit} error={error}>
        <NewPasswordField label="New password" minCharacters={min} {...field('newPassword', newPasswordRules(min))} />
        <Button type="submit" kind="primary" busy={isPending}>
          Set new password
        </Button>
      </Form>
    </AuthCard>
  );
}
