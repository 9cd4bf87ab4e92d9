/** `ConnectedProviders`: the registered sessions, one per enclave key. Computes their placement facts, status and snapshots. */
import type { ProviderId, TrustLevel } from '@inference/protocol';
import { type ProviderFacts, type ProviderJobs, unavailableReason } from '@inference/scheduler';
import { isServing, type ProviderStatus, providerFacts, statusOf } from '../placement/provider-status.js';
import { type ProviderSnapshot, snapshotOf } from '../provider-snapshot.js';
import type { ReputationRegistry } from '../reputation/reputation-registry.js';
import type { OnlineSession } from './provider-session.js';

interface ConnectedProvidersOptions {
  readonly reputations: ReputationRegistry;
  readonly minTrustLevel: TrustLevel;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class ConnectedProviders {
  readonly #options: ConnectedProvidersOptions;
  readonly #sessions = new Map<ProviderId, OnlineSession>();
  /** Key: serial number in the attestation of the sessions. */
  readonly #serials = new Map<string, Set<OnlineSession>>();

  constructor(options: ConnectedProvidersOptions) {
    this.#options = options;
  }

  get(providerId: ProviderId): OnlineSession | null {
    return this.#sessions.get(providerId) ?? null;
  }

  all(): Iterable<OnlineSession> {
    return this.#sessions.values();
  }

  /** Sessions whose attestation contains the serial number. */
  withSerial(serialNumber: string): Iterable<OnlineSession> {
    return this.#serials.get(serialNumber) ?? [];
  }

  /** Adds a session. Returns the session of the same key that it replaces, or null. */
  add(session: OnlineSession): OnlineSession | null {
    const { providerId } = session.registration.identity;
    const older = this.get(providerId);
    this.#sessions.set(providerId, session);
    const serial = serialOf(session);
    this.#serials.set(serial, (this.#serials.get(serial) ?? new Set()).add(session));
    if (older !== null) this.#removeSerial(older);
    return older;
  }

  /** Removes a session. Has no effect on a newer session of the same key. */
  remove(session: OnlineSession): void {
    this.#removeSerial(session);
    if (this.isCurrent(session)) this.#sessions.delete(session.registration.identity.providerId);
  }

  /** Whether the session is registered and not replaced by a newer one of the same key. */
  isCurrent(session: OnlineSession): boolean {
    return this.#sessions.get(session.registration.identity.providerId) === session;
  }

  /** `now`: milliseconds since 1970. */
  facts(session: OnlineSession, now = this.#options.now()): ProviderFacts {
    const { reputations, minTrustLevel } = this.#options;
    const { providerId } = session.registration.identity;
    const rules = { isQuarantined: reputations.quarantineOf(providerId) !== null, minTrustLevel };
    return providerFacts(session, reputations.get(providerId), rules, now);
  }

  /** Whether the provider takes jobs, now or after a short pause. */
  isServing(session: OnlineSession): boolean {
    return isServing(this.facts(session), this.#options.now());
  }

  status(session: OnlineSession): ProviderStatus {
    const now = this.#options.now();
    return statusOf(this.facts(session, now), now);
  }

  snapshot(session: OnlineSession): ProviderSnapshot {
    const now = this.#options.now();
    const facts = this.facts(session, now);
    return snapshotOf(session, {
      status: statusOf(facts, now),
      unavailableReason: unavailableReason(facts, now),
      quarantine: this.#options.reputations.quarantineOf(facts.providerId),
    });
  }

  /** Placements and slots of a provider's connection; null: not connected. */
  jobsOf(providerId: ProviderId): ProviderJobs | null {
    const session = this.get(providerId);
    if (session === null) return null;
    const { slots, registeredAt } = session.registration;
    return { placements: session.statistics.placements, slots, since: registeredAt };
  }

  #removeSerial(session: OnlineSession): void {
    const serial = serialOf(session);
    const sessions = this.#serials.get(serial);
    if (sessions?.delete(session) === true && sessions.size === 0) this.#serials.delete(serial);
  }
}

function serialOf(session: OnlineSession): string {
  return session.registration.identity.attestation.serial_number;
}
