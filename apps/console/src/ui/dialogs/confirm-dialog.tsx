/** Asks before something that cannot be taken back. Shows what went wrong, and stays open then. */
import { type ReactNode, useState } from 'react';
import { ErrorNote } from '../feedback/error-state.js';
import { Button } from '../forms/button.js';
import { Dialog, DialogActions } from './dialog.js';

export interface ConfirmDialogProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly confirm: string;
  readonly children: ReactNode;
  /** Closes the dialog when it resolves. */
  readonly onConfirm: () => Promise<unknown>;
}

export function ConfirmDialog({ open, onOpenChange, title, confirm, children, onConfirm }: ConfirmDialogProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const run = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onOpenChange(false);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={title}>
      {children}
      {error === null ? null : <ErrorNote error={error} />}
      <DialogActions>
        <Button onClick={() => onOpenChange(false)}>Cancel</Button>
        <Button kind="danger" busy={busy} onClick={() => void run()}>
          {confirm}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
