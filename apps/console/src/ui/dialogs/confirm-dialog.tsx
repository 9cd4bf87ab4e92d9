/** Asks before an action that cannot be undone. Stays open with the error if the action fails. */
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorNote } from '../feedback/error-state.js';
import { Button } from '../forms/button.js';
import { Dialog, DialogActions } from './dialog.js';

interface ConfirmDialogProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly confirm: string;
  readonly children: ReactNode;
  /** The dialog closes when the promise resolves. */
  readonly onConfirm: () => Promise<unknown>;
}

export function ConfirmDialog({ open, onOpenChange, title, confirm, children, onConfirm }: ConfirmDialogProps) {
  const { mutate, isPending, error } = useMutation({ mutationFn: onConfirm, onSuccess: () => onOpenChange(false) });
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={title}>
      {children}
      <ErrorNote error={error} />
      <DialogActions>
        <Button onClick={() => onOpenChange(false)}>Cancel</Button>
        <Button kind="danger" busy={isPending} onClick={() => mutate()}>
          {confirm}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
