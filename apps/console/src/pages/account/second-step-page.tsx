/** `/sign-in/two-factor`: second step of signing in, with a code from the authenticator app or a backup code. */
import { useState } from 'react';
import { Link, Redirect, useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { useRefreshSession, useSession } from '../../api/session.js';
import { PATHS } from '../../routing/paths.js';
import { nextPath } from '../../routing/sign-in-return.js';
import { Button } from '../../ui/forms/button.js';
import { CheckField, Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { AuthCard } from './auth-card.js';
import { CODE_FIELD, CODE_RULES } from './code-field.js';

export function Page() {
  const session = useSession();
  const [withBackupCode, setWithBackupCode] = useState(false);
  const search = useSearch();
  const next = nextPath(search, PATHS.balance);
  if (session.state === 'signed-in') return <Redirect to={next} replace />;
  return (
    <AuthCard
      title="Two-factor authentication"
      about={withBackupCode ? 'Enter one of your backup codes. Each works once.' : 'Enter the code that your authenticator app shows.'}
      footer={
        <>
          <Button kind="quiet" size="small" onClick={() => setWithBackupCode(!withBackupCode)}>
            {withBackupCode ? 'Use the authenticator app' : 'Use a backup code'}
          </Button>
          <Link href={`${PATHS.signIn}${search === '' ? '' : `?${search}`}`}>Start over</Link>
        </>
      }
    >
      <CodeForm key={String(withBackupCode)} withBackupCode={withBackupCode} next={next} />
    </AuthCard>
  );
}

function CodeForm({ withBackupCode, next }: { readonly withBackupCode: boolean; readonly next: string }) {
  const refreshSession = useRefreshSession();
  const [, navigate] = useLocation();
  const form = useFormMutation({ code: '', trustDevice: false }, async ({ code, trustDevice }) => {
    const method = withBackupCode ? 'verify-backup-code' : 'verify-totp';
    await api.post(`/console/auth/two-factor/${method}`, { code: code.replace(/\s/g, ''), trustDevice });
    await refreshSession();
    navigate(next);
  });
  return (
    <Form onSubmit={form.onSubmit} error={form.error}>
      {withBackupCode ? (
        <Field label="Backup code" autoComplete="off" {...form.field('code', { required: 'Enter a backup code.' })} />
      ) : (
        <Field label="Code" {...CODE_FIELD} {...form.field('code', CODE_RULES)} />
      )}
      <CheckField label="Trust this browser for 30 days" {...form.register('trustDevice')} />
      <Button type="submit" kind="primary" busy={form.isPending}>
        Verify
      </Button>
    </Form>
  );
}
