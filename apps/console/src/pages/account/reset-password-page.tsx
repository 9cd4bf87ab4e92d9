/** Asks for the link with which a forgotten password is replaced, and, opened by that link, replaces it. */
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { Link, useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { useSettings } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { AuthCard } from './auth-card.js';
import { MailNote } from './mail-note.js';
import { EMAIL } from './sign-up-page.js';

export function Page() {
  const query = new URLSearchParams(useSearch());
  const token = query.get('token');
  if (token !== null && token !== '') return <NewPassword token={token} />;
  return <AskForLink expired={query.has('error')} />;
}

function AskForLink({ expired }: { readonly expired: boolean }) {
  const settings = useSettings();
  const [mailed, setMailed] = useState<string | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState } = useForm({ defaultValues: { email: '' } });
  const send = async ({ email }: { email: string }): Promise<void> => {
    setProblem(null);
    try {
      await api.post('/console/auth/request-password-reset', { email, redirectTo: PATHS.resetPassword });
      setMailed(email);
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <AuthCard
      title="Reset the password"
      about="We send you a link that lets you choose a new one."
      footer={<Link href={PATHS.signIn}>Back to signing in</Link>}
    >
      {mailed !== null ? (
        <MailNote sent={`If ${mailed} has an account, a link is on its way there. It is good for an hour, and once.`} />
      ) : settings?.mail === false ? (
        <Note tone="warn" title="This coordinator cannot send mail.">
          <p>Ask its operator to set up mail, or to help you in person.</p>
        </Note>
      ) : (
        <form className="form" noValidate onSubmit={(event) => void handleSubmit(send)(event)}>
          {expired ? (
            <Note tone="warn" title="That link does not work any more.">
              <p>Links are good for an hour, and once. Ask for a new one.</p>
            </Note>
          ) : null}
          {problem === null ? null : <ErrorNote error={problem} />}
          <Field
            label="E-mail address"
            type="email"
            autoComplete="username"
            error={formState.errors.email?.message}
            {...register('email', { required: 'Type your e-mail address.', pattern: EMAIL })}
          />
          <Button type="submit" kind="primary" busy={formState.isSubmitting}>
            Send the link
          </Button>
        </form>
      )}
    </AuthCard>
  );
}

function NewPassword({ token }: { readonly token: string }) {
  const settings = useSettings();
  const min = settings?.min_password_length ?? 10;
  const [, navigate] = useLocation();
  const toast = useToast();
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState } = useForm({ defaultValues: { newPassword: '' } });
  const reset = async ({ newPassword }: { newPassword: string }): Promise<void> => {
    setProblem(null);
    try {
      await api.post('/console/auth/reset-password', { token, newPassword });
      toast.success('The new password holds', 'Every place where you were signed in has been signed out.');
      navigate(PATHS.signIn);
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <AuthCard title="Choose a new password" footer={<Link href={PATHS.resetPassword}>Ask for another link</Link>}>
      <form className="form" noValidate onSubmit={(event) => void handleSubmit(reset)(event)}>
        {problem === null ? null : <ErrorNote error={problem} />}
        <Field
          label="New password"
          type="password"
          autoComplete="new-password"
          hint={`At least ${min} characters.`}
          error={formState.errors.newPassword?.message}
          {...register('newPassword', {
            required: 'Choose a password.',
            minLength: { value: min, message: `A password has at least ${min} characters.` },
          })}
        />
        <Button type="submit" kind="primary" busy={formState.isSubmitting}>
          Set the password
        </Button>
      </form>
    </AuthCard>
  );
}
