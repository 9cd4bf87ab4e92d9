/** How a provider stands: the facts that placement goes by, and the one word of them that is published and told to it. */
import type { TrustLevel } from '@inference/protocol';
import { isTransient, meetsTrustFloor, type ProviderFacts, type UnavailableReason, unavailableReason } from '@inference/scheduler';
import { type Reputation, recentFailures, stateAt } from '../reputation/reputation.js';
import type { OnlineSession } from '../session/provider-session.js';

/** A moment's pause, or being full, is no status; one on trial takes jobs. */
export type ProviderStatus = 'online' | Exclude<UnavailableReason, 'too_hot' | 'no_memory' | 'held_off' | 'on_probation' | 'no_free_slot'>;

export interface StatusRules {
  /** An operator took the provider out of routing. */
  readonly isQuarantined: boolean;
  readonly minTrustLevel: TrustLevel;
}

/** `now` in milliseconds. */
export function providerFacts(
  session: OnlineSession,
  reputation: Reputation,
  { isQuarantined, minTrustLevel }: StatusRules,
  now: number,
): ProviderFacts {
  const { identity, slots } = session.registration;
  const trust = session.trust();
  const state = stateAt(reputation, now);
  return {
    providerId: identity.providerId,
    serialNumber: identity.attestation.serial_number,
    isQuarantined: isQuarantined || state === 'quarantined',
    isDraining: session.isDraining,
    isAway: session.isAway,
    keyNotAfter: session.key?.notAfter ?? 0,
    trustLevel: trust.level,
    ...(meetsTrustFloor(trust.level, minTrustLevel) ? {} : { isBelowMinTrust: true }),
    trustValidUntil: trust.validUntil,
    backoffUntil: session.backoffUntil,
    slots,
    usedSlots: session.jobs.used,
    isBacklogged: session.isBacklogged,
    recentFailures: recentFailures(reputation, now),
    ...(state === 'cooling_down' || state === 'on_probation' ? { restriction: state } : {}),
    host: session.statistics.host,
  };
}

/** `online`, or the lasting reason why it takes no jobs at `now`. */
export function statusOf(facts: ProviderFacts, now: number): ProviderStatus {
  const gate = unavailableReason(facts, now);
  if (gate === 'cooling_down') return gate;
  if (gate === null || isTransient(gate)) return 'online';
  return gate as Exclude<ProviderStatus, 'online'>;
}

/** Whether jobs may come, now or soon. */
export function isServing(facts: ProviderFacts, now: number): boolean {
  const gate = unavailableReason(facts, now);
  return gate === null || isTransient(gate);
}
