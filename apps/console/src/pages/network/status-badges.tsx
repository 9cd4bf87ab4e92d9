/** Badge and texts for the status of providers on public pages, and display forms of codes and ids. */
import type { ProviderStatusCode } from '@inference/protocol';
import { Badge } from '../../ui/display/page.js';
import type { Tone } from '../../ui/feedback/note.js';

interface StatusText {
  readonly label: string;
  readonly tone: Tone;
  readonly meaning: string;
}

const STATUSES: Readonly<Record<ProviderStatusCode, StatusText>> = {
  online: { label: 'Online', tone: 'good', meaning: 'Accepts requests.' },
  away: {
    label: 'Away',
    tone: 'neutral',
    meaning: 'Does not accept requests now: paused, outside its schedule, or its Mac is in use or on battery.',
  },
  draining: { label: 'Draining', tone: 'neutral', meaning: 'Finishes running requests and accepts no new ones.' },
  untrusted: { label: 'Untrusted', tone: 'warn', meaning: 'Does not meet the trust requirements, so it gets no requests.' },
  below_min_trust_level: {
    label: 'Trust too low',
    tone: 'warn',
    meaning: 'Its hardware is not attested, and this network requires attested hardware.',
  },
  cooling_down: { label: 'Cooling down', tone: 'warn', meaning: 'In backoff after failed requests.' },
  quarantined: {
    label: 'Quarantined',
    tone: 'bad',
    meaning: 'Gets no requests: quarantined by an operator, or after a response failed verification.',
  },
  low_battery: { label: 'Low battery', tone: 'warn', meaning: 'Its battery is low, so it gets no requests.' },
  key_expired: { label: 'Key expired', tone: 'warn', meaning: 'Has no valid key for sealed requests, so it gets none.' },
};

/** Text of a status. An unknown status, of a newer coordinator, is shown as its code. */
export function statusText(status: string): StatusText {
  const known: Readonly<Record<string, StatusText>> = STATUSES;
  return known[status] ?? { label: sentenceCase(status), tone: 'neutral', meaning: 'Accepts no requests now.' };
}

export function StatusBadge({ status }: { readonly status: string }) {
  const { label, tone } = statusText(status);
  return (
    <Badge tone={tone} dot>
      {label}
    </Badge>
  );
}

/** Formats a code: `no_free_slot` as "No free slot". */
export function sentenceCase(code: string): string {
  const words = code.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function shortId(id: string): string {
  return id.length <= 12 ? id : `${id.slice(0, 8)}…`;
}
