/** One word or two about the state of something. The colour only repeats what the words say. */
import type { ReactNode } from 'react';
import type { Tone } from '../feedback/note.js';

interface BadgeProps {
  readonly tone?: Tone;
  /** A dot before the words, for states that come and go. */
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
