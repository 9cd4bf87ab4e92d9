/** `CopyField`: text with a copy button. If the browser forbids copying, selects the text. `CopyButton` and `useCopy` are its parts. */
import { Check, Copy } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Button } from './button.js';

interface CopyFieldProps {
  readonly value: string;
  readonly label: string;
  readonly hideLabel?: boolean;
  /** Multiple lines, such as code. */
  readonly multiline?: boolean;
}

export function CopyField({ value, label, hideLabel = false, multiline = false }: CopyFieldProps) {
  const text = useRef<HTMLElement>(null);
  return (
    <div className="field">
      <span className={hideLabel ? 'visually-hidden' : 'field-label'}>{label}</span>
      <div className="copy-field" data-multiline={multiline || undefined}>
        {multiline ? (
          <pre>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (WCAG 2.1.1) */}
            <code ref={text} tabIndex={0}>
              {value}
            </code>
          </pre>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (WCAG 2.1.1)
          <code ref={text} tabIndex={0}>
            {value}
          </code>
        )}
        <CopyButton value={value} label={`Copy ${label}`} onForbidden={() => selectAll(text.current)} />
      </div>
    </div>
  );
}

interface CopyButtonProps {
  readonly value: string;
  /** Label of the button for screen readers. */
  readonly label: string;
  readonly children?: ReactNode;
  readonly onForbidden?: () => void;
}

const SHOWN_MS = 2000;

export function CopyButton({ value, label, children, onForbidden }: CopyButtonProps) {
  const { state, copy } = useCopy(value, onForbidden);
  return (
    <>
      <Button
        size="small"
        kind="quiet"
        aria-label={label}
        icon={state === 'copied' ? <Check size={16} aria-hidden="true" /> : <Copy size={16} aria-hidden="true" />}
        onClick={copy}
      >
        {children ?? (state === 'copied' ? 'Copied' : state === 'forbidden' ? 'Press Ctrl-C' : 'Copy')}
      </Button>
      <CopyStatus state={state} />
    </>
  );
}

type CopyState = 'idle' | 'copied' | 'forbidden';

/** Copies a text. The result is shown for two seconds. */
export function useCopy(value: string, onForbidden?: () => void): { readonly state: CopyState; readonly copy: () => void } {
  const [state, setState] = useState<CopyState>('idle');
  useEffect(() => {
    if (state === 'idle') return;
    const timer = setTimeout(() => setState('idle'), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(value);
      setState('copied');
    } catch {
      // Browsers forbid copying without TLS or by user setting.
      onForbidden?.();
      setState('forbidden');
    }
  };
  return { state, copy: () => void copy() };
}

/** Announces a copy to screen readers. */
export function CopyStatus({ state }: { readonly state: CopyState }) {
  return (
    <span className="visually-hidden" role="status">
      {state === 'copied' ? 'Copied' : state === 'forbidden' ? 'The browser does not let this page copy. Select the text and copy it.' : ''}
    </span>
  );
}

function selectAll(element: HTMLElement | null): void {
  if (element !== null) window.getSelection()?.selectAllChildren(element);
}
