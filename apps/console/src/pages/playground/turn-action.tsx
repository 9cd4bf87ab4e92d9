/** `TurnAction` and `CopyAction`: small buttons below a message. A disabled button can still have the focus (`aria-disabled`). */
import { Check, Copy } from 'lucide-react';
import type { ReactNode } from 'react';
import { CopyStatus, useCopy } from '../../ui/forms/copy-field.js';

interface TurnActionProps {
  readonly label: string;
  readonly icon: ReactNode;
  readonly disabled?: boolean;
  /** State of a switch. */
  readonly pressed?: boolean;
  readonly onClick: () => void;
}

export function TurnAction({ label, icon, disabled = false, pressed, onClick }: TurnActionProps) {
  return (
    <button
      type="button"
      className="turn-action"
      aria-label={label}
      title={label}
      aria-disabled={disabled || undefined}
      aria-pressed={pressed}
      onClick={() => {
        if (!disabled) onClick();
      }}
    >
      {icon}
    </button>
  );
}

/** Button that copies the unformatted text. */
export function CopyAction({ label, value }: { readonly label: string; readonly value: string }) {
  const { state, copy } = useCopy(value);
  const Icon = state === 'copied' ? Check : Copy;
  return (
    <>
      <TurnAction label={label} icon={<Icon size={16} aria-hidden="true" />} onClick={copy} />
      <CopyStatus state={state} />
    </>
  );
}
