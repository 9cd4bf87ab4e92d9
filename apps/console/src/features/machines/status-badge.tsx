/** How a machine stands, in a word or two. */
import { Badge } from '../../ui/display/badge.js';
import { NOT_CONNECTED, type Word } from './status-texts.js';

export function WordBadge({ word, dot = false }: { readonly word: Word; readonly dot?: boolean }) {
  return (
    <Badge tone={word.tone} dot={dot}>
      {word.label}
    </Badge>
  );
}

/** `word`: null while the machine is not connected. */
export function StateBadge({ word }: { readonly word: Word | null }) {
  return <WordBadge word={word ?? NOT_CONNECTED} dot />;
}
