/** `EnableTwoFactorDialog`: enables two-factor authentication in three steps: password, code of the authenticator app, backup codes. */
import { lazy, Suspense, useState } from 'react';
import { api } from '../../api/api-client.js';
import { FormDialog } from '../../ui/dialogs/dialog.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { Field } from '../../ui/forms/field.js';
import { useFormMutation } from '../../ui/forms/form.js';
import { CONFIRMING_PASSWORD_RULES, PasswordField } from './auth-card.js';
import { BackupCodesDialog } from './backup-codes.js';
import { CODE_FIELD, CODE_RULES } from './code-field.js';

const QrCode = lazy(() => import('./qr-code.js').then((module) => ({ default: module.QrCode })));

interface Setup {
  readonly totpURI: string;
  readonly backupCodes: readonly string[];
}

export function EnableTwoFactorDialog({ onClose }: { readonly onClose: () => void }) {
  const [setup, setSetup] = useState<Setup | null>(null);
  const [isConfirmed, setConfirmed] = useState(false);
  const password = useFormMutation({ password: '' }, async (fields) =>
    setSetup(await api.post<Setup>('/console/auth/two-factor/enable', fields)),
  );
  const code = useFormMutation({ code: '' }, async (fields) => {
    await api.post('/console/auth/two-factor/verify-totp', { code: fields.code.replace(/\s/g, '') });
    setConfirmed(true);
  });
  if (setup === null) {
    return (
      <FormDialog onClose={onClose} title="Enable two-factor authentication" form={password} submit="Continue">
        <PasswordField label="Your password" {...password.field('password', CONFIRMING_PASSWORD_RULES)} />
      </FormDialog>
    );
  }
  if (isConfirmed) {
    return <BackupCodesDialog onClose={onClose} title="Two-factor authentication is enabled" codes={setup.backupCodes} />;
  }
  return (
    <FormDialog
      onClose={onClose}
      title="Scan the QR code"
      description="Add your account to an authenticator app, then enter the code that the app shows."
      form={code}
      submit="Enable"
      persistent
    >
      <Suspense fallback={<div className="qr-code" />}>
        <QrCode text={setup.totpURI} label="QR code for the authenticator app" />
      </Suspense>
      <CopyField label="Setup key" value={new URL(setup.totpURI).searchParams.get('secret') ?? ''} />
      <Field label="Code" {...CODE_FIELD} {...code.field('code', CODE_RULES)} />
    </FormDialog>
  );
}
