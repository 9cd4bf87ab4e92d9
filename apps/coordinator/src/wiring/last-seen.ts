/** What stays known of a machine when its connection has ended: what its owner would ask first. */

import type { LastFacts, LastSeenRepository } from '../database/providers/last-seen-repository.js';
import type { ProviderEvent } from '../providers/provider-registry.js';
import type { OnlineSession } from '../providers/session/provider-session.js';
import type { SessionEnd } from '../providers/session/session-options.js';

/** Takes in that a machine came or went. */
export function recordLastSeen(book: LastSeenRepository, event: ProviderEvent, at: number): void {
  if (event.type !== 'joined' && event.type !== 'left') return;
  const { registration } = event.session;
  if (registration === null) return;
  const facts = lastSeenFacts(event.session as OnlineSession, event.type === 'left' ? event.end : null);
  book.note(registration.identity.providerId, { at, facts });
}

/** `end`: how the connection ended, or null while it lives. */
function lastSeenFacts(session: OnlineSession, end: SessionEnd | null): LastFacts {
  const { identity, agentName, agentVersion } = session.registration;
  const { requestsServed, tokensGenerated, decodeTps } = session.statistics;
  return {
    serial_number: identity.attestation.serial_number,
    chip_name: identity.attestation.chip_name,
    agent: { name: agentName, version: agentVersion },
    trust_level: session.trust().level ?? 'none',
    models: session.models.map(({ id }) => id),
    requests_served: requestsServed,
    tokens_generated: tokensGenerated,
    decode_tps: decodeTps,
    left: end === null ? null : end.by === 'provider' ? 'closed' : end.code,
  };
}
