/** Modal dialog: traps the focus, returns it on close, and closes on Escape. */
import { Dialog as Base } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import type { ReactNode } from 'react';

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
