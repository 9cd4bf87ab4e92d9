/** Modal dialogs: `Dialog`, `ConfirmDialog` for a decision, and `FormDialog` with a form. They trap the focus and close on Escape. */
import { Dialog as Base } from '@base-ui/react/dialog';
import { useMutation } from '@tanstack/react-query';
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { ErrorNote } from '../feedback/error-state.js';
import { Button } from '../forms/button.js';
import { Form, type FormMutation } from '../forms/form.js';

interface DialogProps {
  /** Keep the dialog mounted with `open` false to animate the close. */
  readonly open?: boolean;
  readonly onClose: () => void;
  readonly title: ReactNode;
  /** One or two sentences below the title. */
  readonly description?: ReactNode;
  /** Clicks outside do not close the dialog; for content that would be lost, such as a key shown once. */
  readonly persistent?: boolean;
  /** For content with long lines, such as code. */
  readonly wide?: boolean;
  readonly children: ReactNode;
}

export function Dialog({ open = true, onClose, title, description, persistent = false, wide = false, children }: DialogProps) {
  return (
    <Base.Root open={open} onOpenChange={(next) => (next ? undefined : onClose())} disablePointerDismissal={persistent}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className="dialog" data-wide={wide || undefined}>
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

interface ConfirmDialogProps extends Omit<DialogProps, 'description'> {
  readonly confirm: string;
  readonly errorTitle?: string;
  /** Shows a button back to the previous step instead of a cancel button. */
  readonly onBack?: () => void;
  /** The dialog closes when the promise resolves. */
  readonly onConfirm: () => Promise<unknown>;
}

/** Stays open and shows the error if the confirmed action fails. */
export function ConfirmDialog({ confirm, errorTitle, onBack, children, onConfirm, ...dialog }: ConfirmDialogProps) {
  const { mutate, isPending, error } = useMutation({ mutationFn: onConfirm, onSuccess: dialog.onClose });
  return (
    <Dialog {...dialog}>
      {children}
      <ErrorNote error={error} title={errorTitle} />
      <DialogActions>
        {onBack === undefined ? <Button onClick={dialog.onClose}>Cancel</Button> : <Button onClick={onBack}>Back</Button>}
        <Button kind="danger" busy={isPending} onClick={() => mutate()}>
          {confirm}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

interface FormDialogProps extends DialogProps {
  readonly form: Pick<FormMutation, 'onSubmit' | 'isPending' | 'error'>;
  readonly errorTitle?: string;
  readonly submit: string;
  readonly danger?: boolean;
}

export function FormDialog({ form, errorTitle, submit, danger = false, children, ...dialog }: FormDialogProps) {
  return (
    <Dialog {...dialog}>
      <Form onSubmit={form.onSubmit} error={form.error} errorTitle={errorTitle}>
        {children}
        <DialogActions>
          <Button onClick={dialog.onClose}>Cancel</Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} busy={form.isPending}>
            {submit}
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  );
}
