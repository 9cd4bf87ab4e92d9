/** Reason and end of a restriction by reputation (backoff, quarantine or probation), for the operators' pages about machines. */
import type { AdminProvider } from '@inference/formats';
import { humanizeCode } from '../../../features/machines/status-texts.js';

type Reputation = AdminProvider['reputation'];

/** Reason for the restriction: the kind of failure, then the details. Empty if both are unknown. */
export function restrictionReason({ reason, detail }: Pick<Reputation, 'reason' | 'detail'>): string {
  return [reason === null ? null : humanizeCode(reason), detail].filter((text) => text !== null).join(': ');
}

/** End of the restriction, in milliseconds since 1970. Null on probation: it begins at `until`, and has no fixed end. */
export function restrictionEnd({ state, until }: Pick<Reputation, 'state' | 'until'>): number | null {
  return state === 'on_probation' ? null : until;
}
