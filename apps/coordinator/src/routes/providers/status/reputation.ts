/** What a provider's past failures mean for it now. */
import type { ProviderStatusAnswer } from '@inference/protocol';
import type { Fleet } from '../../../fleet/fleet.js';
import type { OnlineSession } from '../../../fleet/provider-session.js';

export function reputationOf(fleet: Fleet, session: OnlineSession, now: number): ProviderStatusAnswer['reputation'] {
  const { state, reason, since, until, recentFailures } = fleet.standings.of(session.registration.identity.providerId);
  return {
    state,
    reason,
    since: time(since),
    until: time(until),
    recent_failures: recentFailures,
    held_off_until: session.heldOffUntil > now ? time(session.heldOffUntil) : null,
    refused_in_a_row: session.heldOffInARow,
  };
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
