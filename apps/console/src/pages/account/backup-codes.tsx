/** `BackupCodesDialog`: shows new backup codes, once, to copy, download or print. */
import { Download, Printer } from 'lucide-react';
import { useMe } from '../../api/session.js';
import { Dialog, DialogActions } from '../../ui/dialogs/dialog.js';
import { downloadText } from '../../ui/download.js';
import { Note } from '../../ui/feedback/note.js';
import { Button } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';

interface BackupCodesDialogProps {
  readonly title: string;
  readonly codes: readonly string[];
  readonly onClose: () => void;
}

export function BackupCodesDialog({ title, codes, onClose }: BackupCodesDialogProps) {
  return (
    <Dialog onClose={onClose} title={title} persistent>
      <BackupCodes codes={codes} />
      <DialogActions>
        <Button kind="primary" onClick={onClose}>
          I saved the codes
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function BackupCodes({ codes }: { readonly codes: readonly string[] }) {
  const { email } = useMe();
  const text = codes.join('\n');
  return (
    <div className="stack-small">
      <Note tone="warn" title="Save these codes now. They are not shown again.">
        <p>
          Each code signs {email} in once at {window.location.host}, if you lose your authenticator app.
        </p>
      </Note>
      <CopyField label="Backup codes" value={text} multiline />
      <div className="row">
        <Button
          icon={<Download size={16} aria-hidden="true" />}
          onClick={() => downloadText('inference-backup-codes.txt', `${text}\n`, 'text/plain')}
        >
          Download
        </Button>
        <Button icon={<Printer size={16} aria-hidden="true" />} onClick={() => window.print()}>
          Print
        </Button>
      </div>
    </div>
  );
}
