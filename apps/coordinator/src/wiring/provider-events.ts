/** What the fleet's events say in the log: who came, who went, and what a provider is worth. */

import type { Log } from '../log.js';
import type { ProviderEvent } from '../providers/provider-registry.js';

export function logProviderEvent(log: Log, event: ProviderEvent): void {
  switch (event.type) {
    case 'joined': {
      const { identity, agentVersion, slots } = event.session.registration;
      const models = event.session.models.map((model) => model.id);
      log.info({ provider: identity.providerId, simulated: identity.simulated, agent: agentVersion, slots, models }, 'provider joined');
      return;
    }
    case 'left': {
      const provider = event.session.registration?.identity.providerId ?? null;
      log.info({ provider, session: event.session.sessionId, ...event.end, message: undefined }, 'provider left');
      return;
    }
    case 'standing': {
      const { level, parts } = event.session.trust();
      const gaps = parts.filter(({ state }) => state !== 'ok').map(({ name, state, reason }) => `${name} ${state}: ${reason}`);
      const provider = event.session.registration.identity.providerId;
      log.info({ provider, trust_level: level, status: event.status, gaps }, 'provider told its standing');
      return;
    }
    case 'quarantined':
      log.error({ provider: event.providerId, reason: event.reason, until: event.until }, 'provider quarantined');
      return;
    case 'cooling_down':
      log.warn({ provider: event.providerId, reason: event.reason, until: event.until }, 'provider cooling down');
      return;
    case 'reinstated':
      log.warn({ provider: event.providerId }, 'provider reinstated');
  }
}
