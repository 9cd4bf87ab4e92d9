/** `/sign-in`: signs in with email address and password, or with a passkey, then opens the page in `?next=`. */
import { useMutation } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { Link, Redirect, useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { ApiError } from '../../api/api-error.js';
import { useRefreshSession, useSession } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { nextPath } from '../../routing/sign-in-return.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { PageSkeleton } from '../../ui/feedback/placeholders.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { AuthCard, MailNote, PasswordField } from './auth-card.js';
import { cancelAutofill, canUsePasskeys, signInByAutofill, signInWithPasskey } from './web-authn.js';

export function Page() {
  const session = useSession();
  const refreshSession = useRefreshSession();
  const [, navigate] = useLocation();
  const search = useSearch();
  const next = nextPath(search, PATHS.balance);
  const finish = async (): Promise<void> => {
    await refreshSession();
    navigate(next);
  };
  const { field, getValues, onSubmit, isPending, error } = useFormMutation({ email: '', password: '' }, async (fields) => {
    const { twoFactorRedirect } = await api.post<{ twoFactorRedirect?: true }>('/console/auth/sign-in/email', fields);
    if (twoFactorRedirect) return navigate(`${PATHS.secondStep}?next=${encodeURIComponent(next)}`);
    await finish();
  });
  const passkey = useMutation({
    mutationFn: async () => {
      await signInWithPasskey();
      await finish();
    },
  });
  usePasskeyAutofill(finish);
  if (session.state === 'signed-in' && !isPending) return <Redirect to={next} replace />;
  if (session.state === 'loading') return <PageSkeleton />;
  return (
    <AuthCard
      title="Sign in"
      footer={
        <>
          <Link href={PATHS.resetPassword}>Forgot your password?</Link>
          <span>
            New here? <Link href={`${PATHS.signUp}${search === '' ? '' : `?${search}`}`}>Create an account</Link>
          </span>
        </>
      }
    >
      <Form onSubmit={onSubmit} error={error}>
        {isUnverified(error) ? <ResendVerification email={() => getValues('email')} /> : null}
        <Field
          label="Email address"
          type="email"
          autoComplete="username webauthn"
          {...field('email', { required: 'Enter your email address.' })}
        />
        <PasswordField label="Password" {...field('password', { required: 'Enter your password.' })} />
        <Button type="submit" kind="primary" busy={isPending}>
          Sign in
        </Button>
      </Form>
      {canUsePasskeys() ? (
        <div className="auth-passkey">
          <ErrorNote error={passkey.error} />
          <Button busy={passkey.isPending} onClick={() => passkey.mutate()}>
            Use a passkey
          </Button>
        </div>
      ) : null}
    </AuthCard>
  );
}

/** Offers passkeys among the suggestions of the email field while the page is shown. */
function usePasskeyAutofill(finish: () => Promise<void>): void {
  const onSignedIn = useEffectEvent(finish);
  useEffect(() => {
    if (!canUsePasskeys()) return;
    // Failures are not shown, because the user did not request a passkey.
    void signInByAutofill().then(
      (isSignedIn) => (isSignedIn ? onSignedIn() : undefined),
      () => {},
    );
    return () => void cancelAutofill();
  }, []);
}

/** Whether the address is unverified. The coordinator has no error code for that, only status 403 with better-auth's message. */
function isUnverified(error: unknown): boolean {
  return error instanceof ApiError && error.status === 403 && /verif/i.test(error.message);
}

function ResendVerification({ email }: { readonly email: () => string }) {
  const {
    mutate,
    isPending,
    data: mailed,
    error,
  } = useMutation({
    mutationFn: async () => {
      const address = email();
      await api.post('/console/auth/send-verification-email', { email: address, callbackURL: PATHS.account });
      return address;
    },
  });
  if (mailed !== undefined) return <MailNote sent={`We sent a link to ${mailed}. Open it to verify the address.`} />;
  return (
    <>
      <ErrorNote error={error} />
      <Button busy={isPending} onClick={() => mutate()}>
        Resend verification email
      </Button>
    </>
  );
}
