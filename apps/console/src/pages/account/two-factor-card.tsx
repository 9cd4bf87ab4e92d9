/** `TwoFactorCard`: enables and disables two-factor authentication, and replaces backup codes. */
import type { ConsoleTwoFactor } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { api } from '../../api/api-client.js';
import { FormDialog } from '../../ui/dialogs/dialog.js';
import { Badge, Card } from '../../ui/display/page.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { Field } from '../../ui/forms/field.js';
import { useFormMutation } from '../../ui/forms/form.js';
import { CONFIRMING_PASSWORD_RULES, PasswordField } from './auth-card.js';
import { BackupCodesDialog } from './backup-codes.js';
import { CODE_FIELD, CODE_RULES } from './code-field.js';

const TWO_FACTOR_KEY = ['two-factor'] as const;

export function TwoFactorCard() {
  const [dialog, setDialog] = useState<'enable' | 'codes' | 'disable' | null>(null);
  const queryClient = useQueryClient();
  const twoFactor = useQuery({
    queryKey: TWO_FACTOR_KEY,
    queryFn: ({ signal }) => api.get<ConsoleTwoFactor>('/console/v1/two-factor', { signal }),
  });
  const close = (): void => {
    setDialog(null);
    void queryClient.invalidateQueries({ queryKey: TWO_FACTOR_KEY });
  };
  return (
    <Card title="Two-factor authentication" about="After your password, signing in asks for a code from an authenticator app.">
      <Loaded query={twoFactor} subject="Two-factor authentication">
        {twoFactor.data?.enabled ? (
          <div className="stack-small">
            <p className="inline">
              <Badge tone="good">Enabled</Badge> <span>{twoFactor.data.backup_codes_left} of 10 backup codes left</span>
            </p>
            <div className="row">
              <Button onClick={() => setDialog('codes')}>New backup codes</Button>
              <Button kind="danger" onClick={() => setDialog('disable')}>
                Disable two-factor authentication
              </Button>
            </div>
          </div>
        ) : (
          <Button onClick={() => setDialog('enable')}>Enable two-factor authentication</Button>
        )}
      </Loaded>
      {dialog === 'enable' ? <EnableTwoFactorDialog onClose={close} /> : null}
      {dialog === 'codes' ? <NewCodesDialog onClose={close} /> : null}
      {dialog === 'disable' ? <DisableDialog onClose={close} /> : null}
    </Card>
  );
}

function NewCodesDialog({ onClose }: { readonly onClose: () => void }) {
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  const form = useFormMutation({ password: '' }, async (fields) => {
    const { backupCodes } = await api.post<{ backupCodes: string[] }>('/console/auth/two-factor/generate-backup-codes', fields);
    setCodes(backupCodes);
  });
  if (codes !== null) {
    return <BackupCodesDialog onClose={onClose} title="Your new backup codes" codes={codes} />;
  }
  return (
    <FormDialog
      onClose={onClose}
      title="Create new backup codes?"
      description="Your current codes stop working."
      form={form}
      submit="Create"
    >
      <PasswordField label="Your password" {...form.field('password', CONFIRMING_PASSWORD_RULES)} />
    </FormDialog>
  );
}

function DisableDialog({ onClose }: { readonly onClose: () => void }) {
  const toast = useToast();
  const form = useFormMutation({ password: '' }, async (fields) => {
    await api.post('/console/auth/two-factor/disable', fields);
    toast.success('Two-factor authentication disabled');
    onClose();
  });
  return (
    <FormDialog
      onClose={onClose}
      title="Disable two-factor authentication?"
      description="Signing in will ask for your password only."
      form={form}
      submit="Disable"
      danger
    >
      <PasswordField label="Your password" {...form.field('password', CONFIRMING_PASSWORD_RULES)} />
    </FormDialog>
  );
}

const QrCode = lazy(() => import('./qr-code.js').then((module) => ({ default: module.QrCode })));

interface Setup {
  readonly totpURI: string;
  readonly backupCodes: readonly string[];
}

/** Enables two-factor authentication in three steps: password, code of the authenticator app, backup codes. */
function EnableTwoFactorDialog({ onClose }: { readonly onClose: () => void }) {
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
