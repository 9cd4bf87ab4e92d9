/** Makes an account, and signs it in. */
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { Link, Redirect, useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { useSession, useSessionChanged } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { nextPath } from '../../routing/sign-in-return.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { PageSkeleton } from '../../ui/feedback/skeleton.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { AuthCard } from './auth-card.js';
import { MailNote } from './mail-note.js';

interface SignUpForm {
  readonly name: string;
  readonly email: string;
  readonly password: string;
}

export function Page() {
  const session = useSession();
  const changed = useSessionChanged();
  const [, navigate] = useLocation();
  const search = useSearch();
  const [mailed, setMailed] = useState<string | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState } = useForm<SignUpForm>({ defaultValues: { name: '', email: '', password: '' } });
  const { errors, isSubmitting } = formState;
  const next = nextPath(search, PATHS.quickStart);
  if (session.state === 'signed-in' && !isSubmitting) return <Redirect to={next} replace />;
  if (session.state === 'loading') return <PageSkeleton />;
  const settings = session.state === 'failed' ? null : session.settings;
  const min = settings?.min_password_length ?? 10;
  const signUp = async (form: SignUpForm): Promise<void> => {
    setProblem(null);
    try {
      await api.post('/console/auth/sign-up/email', { ...form, callbackURL: PATHS.account });
      if (settings?.email_verification_required) return setMailed(form.email);
      await changed();
      navigate(next);
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <AuthCard
      title="Create an account"
      about="One account to use models, and to earn with your Macs."
      footer={
        <span>
          Have an account? <Link href={`${PATHS.signIn}${search === '' ? '' : `?${search}`}`}>Sign in</Link>
        </span>
      }
    >
      {mailed === null ? (
        <form className="form" noValidate onSubmit={(event) => void handleSubmit(signUp)(event)}>
          {problem === null ? null : <ErrorNote error={problem} />}
          <Field
            label="Name"
            autoComplete="name"
            error={errors.name?.message}
            {...register('name', { required: 'What shall we call you?', maxLength: { value: 100, message: 'At most 100 characters.' } })}
          />
          <Field
            label="E-mail address"
            type="email"
            autoComplete="email"
            error={errors.email?.message}
            {...register('email', { required: 'Your e-mail address is what you sign in with.', pattern: EMAIL })}
          />
          <Field
            label="Password"
            type="password"
            autoComplete="new-password"
            hint={`At least ${min} characters. A few words make a good one.`}
            error={errors.password?.message}
            {...register('password', {
              required: 'Choose a password.',
              minLength: { value: min, message: `A password has at least ${min} characters.` },
              maxLength: { value: 128, message: 'At most 128 characters.' },
            })}
          />
          <Button type="submit" kind="primary" busy={isSubmitting}>
            Create account
          </Button>
        </form>
      ) : (
        <MailNote sent={`We sent a link to ${mailed}. Open it to confirm the address; you are signed in then.`} />
      )}
    </AuthCard>
  );
}

/** Enough to catch a slip; the mail itself is the proof. */
export const EMAIL = { value: /^\S+@\S+\.\S+$/, message: 'This is no e-mail address.' };
