/** `/sign-up`: creates an account, then signs in or asks the user to verify the email address. */
import { useState } from 'react';
import { Link, Redirect, useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { useRefreshSession, useSession } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { nextPath } from '../../routing/sign-in-return.js';
import { PageSkeleton } from '../../ui/feedback/placeholders.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { AuthCard, EMAIL_PATTERN, MailNote, NewPasswordField, newPasswordRules } from './auth-card.js';

export function Page() {
  const session = useSession();
  const refreshSession = useRefreshSession();
  const [, navigate] = useLocation();
  const search = useSearch();
  const [mailed, setMailed] = useState<string | null>(null);
  const next = nextPath(search, PATHS.quickStart);
  const settings = session.state === 'signed-in' || session.state === 'signed-out' ? session.settings : null;
  const min = settings?.min_password_length ?? 10;
  const { field, onSubmit, isPending, error } = useFormMutation({ name: '', email: '', password: '' }, async (fields) => {
    await api.post('/console/auth/sign-up/email', { ...fields, callbackURL: nextPath(search, PATHS.account) });
    if (settings?.email_verification_required) return setMailed(fields.email);
    await refreshSession();
    navigate(next);
  });
  if (session.state === 'signed-in' && !isPending) return <Redirect to={next} replace />;
  if (session.state === 'loading') return <PageSkeleton />;
  return (
    <AuthCard
      title="Create an account"
      about="One account to use models and to earn with your Macs."
      footer={
        <span>
          Have an account? <Link href={`${PATHS.signIn}${search === '' ? '' : `?${search}`}`}>Sign in</Link>
        </span>
      }
    >
      {mailed === null ? (
        <Form onSubmit={onSubmit} error={error}>
          <Field
            label="Name"
            autoComplete="name"
            {...field('name', { required: 'Enter your name.', maxLength: { value: 100, message: 'At most 100 characters.' } })}
          />
          <Field
            label="Email address"
            type="email"
            autoComplete="email"
            {...field('email', { required: 'Enter your email address.', pattern: EMAIL_PATTERN })}
          />
          <NewPasswordField
            label="Password"
            minCharacters={min}
            hint={`At least ${min} characters. Several words make a strong password.`}
            {...field('password', newPasswordRules(min))}
          />
          <Button type="submit" kind="primary" busy={isPending}>
            Create account
          </Button>
        </Form>
      ) : (
        <MailNote sent={`We sent a link to ${mailed}. Open it to verify the address and sign in.`} />
      )}
    </AuthCard>
  );
}
