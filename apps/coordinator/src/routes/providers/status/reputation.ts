/** What a provider's past failures mean for it now. */
import type { ProviderStatusAnswer } from '@inference/protocol';
import type { ProviderRegistry } from '../../../providers/provider-registry.js';
import type { OnlineSession } from '../../../providers/session/provider-session.js';

export function reputationOf(fleet: ProviderRegistry, session: OnlineSession, now: number): ProviderStatusAnswer['reputation'] {
  const { state, reason, since, until, recentFailures } = fleet.reputations.summaryOf(session.registration.identity.providerId);
  return {
    state,
    reason,
    since: time(since),
    until: time(until),
    recent_failures: recentFailures,
    held_off_until: session.backoffUntil > now ? time(session.backoffUntil) : null,
    refused_in_a_row: session.backoffCount,
  };
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
