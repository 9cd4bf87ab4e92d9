/** Signs in with e-mail address and password, and goes back to where that was asked for. */
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { Link, Redirect, useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { ApiError } from '../../api/api-error.js';
import { useSession, useSessionChanged } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { nextPath } from '../../routing/sign-in-return.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { PageSkeleton } from '../../ui/feedback/skeleton.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { AuthCard } from './auth-card.js';
import { MailNote } from './mail-note.js';

interface SignInForm {
  readonly email: string;
  readonly password: string;
}

export function Page() {
  const session = useSession();
  const changed = useSessionChanged();
  const [, navigate] = useLocation();
  const search = useSearch();
  const [problem, setProblem] = useState<unknown>(null);
  const [mailed, setMailed] = useState<string | null>(null);
  const { register, handleSubmit, formState, getValues } = useForm<SignInForm>({ defaultValues: { email: '', password: '' } });
  const { errors, isSubmitting } = formState;
  const next = nextPath(search, PATHS.balance);
  if (session.state === 'signed-in' && !isSubmitting) return <Redirect to={next} replace />;
  if (session.state === 'loading') return <PageSkeleton />;
  const signIn = async (form: SignInForm): Promise<void> => {
    setProblem(null);
    try {
      await api.post('/console/auth/sign-in/email', form);
      await changed();
      navigate(next);
    } catch (error) {
      setProblem(error);
    }
  };
  const sendAgain = async (): Promise<void> => {
    const email = getValues('email');
    try {
      await api.post('/console/auth/send-verification-email', { email, callbackURL: PATHS.account });
      setProblem(null);
      setMailed(email);
    } catch (error) {
      setProblem(error);
    }
  };
  const unconfirmed = problem instanceof ApiError && problem.status === 403 && /verif/i.test(problem.message);
  return (
    <AuthCard
      title="Sign in"
      footer={
        <>
          <Link href={PATHS.resetPassword}>Forgot the password?</Link>
          <span>
            New here? <Link href={`${PATHS.signUp}${search === '' ? '' : `?${search}`}`}>Create an account</Link>
          </span>
        </>
      }
    >
      <form className="form" noValidate onSubmit={(event) => void handleSubmit(signIn)(event)}>
        {problem === null ? null : <ErrorNote error={problem} />}
        {mailed === null ? null : <MailNote sent={`We sent a link to ${mailed}. Open it to confirm the address.`} />}
        {unconfirmed ? <Button onClick={() => void sendAgain()}>Send the confirming link again</Button> : null}
        <Field
          label="E-mail address"
          type="email"
          autoComplete="username"
          error={errors.email?.message}
          {...register('email', { required: 'Type your e-mail address.' })}
        />
        <Field
          label="Password"
          type="password"
          autoComplete="current-password"
          error={errors.password?.message}
          {...register('password', { required: 'Type your password.' })}
        />
        <Button type="submit" kind="primary" busy={isSubmitting}>
          Sign in
        </Button>
      </form>
    </AuthCard>
  );
}
