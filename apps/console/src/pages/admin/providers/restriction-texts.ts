/** Reason and end of a restriction by reputation, for the pages of machines. A restriction is a backoff, quarantine or probation. */
import type { AdminProvider } from '@inference/formats';
import { humanizeCode } from '../../../features/machines/status-texts.js';

type Reputation = AdminProvider['reputation'];

/** Why the machine was restricted: the kind of failure, then the exact problem. Empty if neither is known. */
export function restrictionReason({ reason, detail }: Pick<Reputation, 'reason' | 'detail'>): string {
  return [reason === null ? null : humanizeCode(reason), detail].filter((text) => text !== null).join(': ');
}

/** Planned end, in milliseconds since 1970. Null on probation, which begins at `until` and ends with the next verified answer. */
export function restrictionEnd({ state, until }: Pick<Reputation, 'state' | 'until'>): number | null {
  return state === 'on_probation' ? null : until;
}
