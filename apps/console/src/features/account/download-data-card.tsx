/** `DownloadDataCard`: asks for the password, then downloads everything that the coordinator stores about an account. */
import type { ConsoleAccountExport } from '@inference/formats';
import { Download } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../api/api-client.js';
import { FormDialog } from '../../ui/dialogs/dialog.js';
import { Card } from '../../ui/display/page.js';
import { downloadFile } from '../../ui/download.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { useFormMutation } from '../../ui/forms/form.js';

interface DownloadDataProps {
  /** Id of an organisation; null: the personal account. */
  readonly accountId: string | null;
  /** Name of the account in texts, such as "your account". */
  readonly accountName: string;
}

export function DownloadDataCard({ accountId, accountName }: DownloadDataProps) {
  const [open, setOpen] = useState(false);
  return (
    <Card
      title="Download data"
      about={
        <>
          One JSON file with everything stored about {accountName}: settings, API keys without their secrets, usage, receipts, payments,
          machines and logs. Prompts and responses are never stored. <Link href="/docs/data-protection">What is stored</Link>
        </>
      }
    >
      <Button icon={<Download size={18} aria-hidden="true" />} onClick={() => setOpen(true)}>
        Download data
      </Button>
      {open ? <DownloadDialog accountId={accountId} accountName={accountName} onClose={() => setOpen(false)} /> : null}
    </Card>
  );
}

function DownloadDialog({ accountId, accountName, onClose }: DownloadDataProps & { readonly onClose: () => void }) {
  const toast = useToast();
  const form = useFormMutation({ password: '' }, async (fields) => {
    const { path } = await api.post<ConsoleAccountExport>('/console/v1/account/export', fields, { accountId });
    downloadFile(path);
    onClose();
    toast.success('Download started');
  });
  return (
    <FormDialog onClose={onClose} title={`Download the data of ${accountName}`} form={form} submit="Download">
      <p>Keep the file safe: it contains personal data.</p>
      <Field
        label="Your password"
        type="password"
        autoComplete="current-password"
        {...form.field('password', { required: 'Enter your password to continue.' })}
      />
    </FormDialog>
  );
}
