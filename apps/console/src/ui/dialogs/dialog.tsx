/** Modal dialog: traps the focus, returns it on close, and closes on Escape. */
import { Dialog as Base } from '@base-ui/react/dialog';
import { useMutation } from '@tanstack/react-query';
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { ErrorNote } from '../feedback/error-state.js';
import { Button } from '../forms/button.js';

interface DialogProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: ReactNode;
  /** One or two sentences below the title. */
  readonly description?: ReactNode;
  /** Clicks outside do not close the dialog; for content that would be lost, such as a key shown once. */
  readonly persistent?: boolean;
  readonly children: ReactNode;
}

export function Dialog({ open, onOpenChange, title, description, persistent = false, children }: DialogProps) {
  return (
    <Base.Root open={open} onOpenChange={(next) => onOpenChange(next)} disablePointerDismissal={persistent}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className="dialog">
          <div className="dialog-head">
            <Base.Title className="dialog-title">{title}</Base.Title>
            <Base.Close className="icon-button" aria-label="Close">
              <X size={20} aria-hidden="true" />
            </Base.Close>
          </div>
          {description === undefined ? null : <Base.Description className="dialog-description">{description}</Base.Description>}
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

/** Row of buttons at the end of a dialog. */
export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <div className="dialog-actions">{children}</div>;
}

interface ConfirmDialogProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly confirm: string;
  readonly children: ReactNode;
  /** The dialog closes when the promise resolves. */
  readonly onConfirm: () => Promise<unknown>;
}

/** Asks before an action that cannot be undone. Stays open with the error if the action fails. */
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
