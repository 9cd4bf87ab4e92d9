/** What a provider's past failures mean for it now. */
import type { ProviderStatusAnswer } from '@inference/protocol';
import type { ProviderRegistry } from '../../../providers/provider-registry.js';
import type { ProviderSnapshot } from '../../../providers/provider-snapshot.js';

export function reputationOf(fleet: ProviderRegistry, provider: ProviderSnapshot, now: number): ProviderStatusAnswer['reputation'] {
  const { state, reason, since, until, recentFailures } = fleet.reputations.summaryOf(provider.registration.identity.providerId);
  return {
    state,
    reason,
    since: time(since),
    until: time(until),
    recent_failures: recentFailures,
    held_off_until: provider.backoffUntil > now ? time(provider.backoffUntil) : null,
    refused_in_a_row: provider.backoffCount,
  };
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
