/** `Note`: highlighted note of a few sentences. `Progress`: progress bar. */
import { CircleAlert, CircleCheck, Info } from 'lucide-react';
import type { ReactNode } from 'react';

export type Tone = 'neutral' | 'good' | 'warn' | 'bad' | 'accent';

interface NoteProps {
  readonly tone?: Tone;
  readonly title?: string;
  readonly children: ReactNode;
}

export function Note({ tone = 'neutral', title, children }: NoteProps) {
  const Icon = tone === 'good' ? CircleCheck : tone === 'warn' || tone === 'bad' ? CircleAlert : Info;
  return (
    <div className="note" data-tone={tone}>
      <Icon size={18} aria-hidden="true" />
      <div>
        {title === undefined ? null : <strong className="note-title">{title}</strong>}
        {children}
      </div>
    </div>
  );
}

interface ProgressProps {
  readonly label: string;
  /** From 0 to 1; absent if unknown. */
  readonly value?: number;
}

export function Progress({ label, value }: ProgressProps) {
  return (
    <div className="progress">
      <span role="status">{label}</span>
      <progress aria-label={label} max={1} {...(value === undefined ? {} : { value })} />
    </div>
  );
}
