/** Short state label. The colour only repeats the text. */
import type { ReactNode } from 'react';
import type { Tone } from '../feedback/note.js';

interface BadgeProps {
  readonly tone?: Tone;
  /** Dot before the text, for transient states. */
  readonly dot?: boolean;
  readonly children: ReactNode;
}

export function Badge({ tone = 'neutral', dot = false, children }: BadgeProps) {
  return (
    <span className="badge" data-tone={tone}>
      {dot ? <span className="badge-dot" aria-hidden="true" /> : null}
      {children}
    </span>
  );
}
