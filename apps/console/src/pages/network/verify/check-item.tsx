/** `CheckItem`: list item for one claim or trust check, with name, value, result and explanation. */
import { CircleCheck, CircleDashed, CircleX, type LucideIcon, MessageSquareQuote } from 'lucide-react';
import type { ReactNode } from 'react';
import { Badge } from '../../../ui/display/page.js';
import type { Tone } from '../../../ui/feedback/note.js';

const ICONS: Readonly<Record<Tone, LucideIcon>> = {
  good: CircleCheck,
  warn: MessageSquareQuote,
  bad: CircleX,
  neutral: CircleDashed,
  accent: CircleCheck,
};

interface CheckItemProps {
  readonly name: ReactNode;
  readonly value?: ReactNode;
  readonly tone: Tone;
  readonly result: string;
  readonly children: ReactNode;
}

export function CheckItem({ name, value, tone, result, children }: CheckItemProps) {
  const Icon = ICONS[tone];
  return (
    <li className="check-item" data-tone={tone}>
      <Icon size={18} aria-hidden="true" />
      <span>
        <span className="check-name">{name}</span> {value === undefined ? null : <span className="check-value">{value}</span>}
      </span>
      <Badge tone={tone}>{result}</Badge>
      <p className="check-text">{children}</p>
    </li>
  );
}
