/** States and trust of providers in words and colours. */
import { Badge } from '../../ui/display/badge.js';
import type { Tone } from '../../ui/feedback/note.js';

interface StatusWords {
  readonly label: string;
  readonly tone: Tone;
  readonly meaning: string;
}

const STATUSES: Readonly<Record<string, StatusWords>> = {
  online: { label: 'Online', tone: 'good', meaning: 'It takes requests.' },
  away: { label: 'Away', tone: 'neutral', meaning: 'Its owner has paused it, or its schedule says so.' },
  draining: { label: 'Leaving', tone: 'neutral', meaning: 'It ends its last requests and takes no new ones.' },
  untrusted: { label: 'Untrusted', tone: 'warn', meaning: 'It has not shown what trust needs, so it gets no requests.' },
  below_min_trust_level: {
    label: 'Trust too low',
    tone: 'warn',
    meaning: 'Its hardware is not proved, and the operator of this network sends requests only to machines whose hardware is.',
  },
  cooling_down: { label: 'Cooling down', tone: 'warn', meaning: 'It failed some requests and rests for a while.' },
  quarantined: { label: 'Quarantined', tone: 'bad', meaning: 'It gave answers that did not verify, and gets no requests.' },
  no_key: { label: 'No key', tone: 'warn', meaning: 'It has no valid key to seal requests to.' },
};

/** A status that this page does not know yet is shown as it is. */
export function statusWords(status: string): StatusWords {
  return STATUSES[status] ?? { label: sentence(status), tone: 'neutral', meaning: 'It takes no requests now.' };
}

export function StatusBadge({ status }: { readonly status: string }) {
  const { label, tone } = statusWords(status);
  return (
    <Badge tone={tone} dot>
      {label}
    </Badge>
  );
}

export const TRUST_WORDS = {
  hardware: 'Hardware',
  self_signed: 'Self-signed',
} as const;

export const TRUST_MEANINGS = {
  hardware: "The maker's certificates, device management and the machine's own signed word agree.",
  self_signed: 'The machine speaks for itself: its key signed what it says, and no one else vouches for it.',
} as const;

export function TrustBadge({ level }: { readonly level: 'hardware' | 'self_signed' }) {
  return <Badge tone={level === 'hardware' ? 'accent' : 'neutral'}>{TRUST_WORDS[level]}</Badge>;
}

/** `no_free_slot` as "No free slot". */
export function sentence(code: string): string {
  const words = code.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Enough of an id to tell one from another. */
export function shortId(id: string): string {
  return id.length <= 12 ? id : `${id.slice(0, 8)}…`;
}
