/** How a provider stands: the facts that placement goes by, and the one word of them that is published and told to it. */
import type { TrustLevel } from '@inference/protocol';
import type { OnlineSession } from './provider-session.js';
import { type Reputation, recentFailures, stateAt } from './reputation/reputation.js';
import { type Gate, gateOf, isPassing, meetsFloor, type ProviderFacts } from './scheduler/gates.js';

/** A moment's pause, or being full, is no status; one on trial takes jobs. */
export type ProviderStatus = 'online' | Exclude<Gate, 'too_hot' | 'no_memory' | 'held_off' | 'on_probation' | 'no_free_slot'>;

export interface StandingRules {
  /** An operator took the provider out of routing. */
  readonly held: boolean;
  readonly minTrustLevel: TrustLevel;
}

/** `now` in milliseconds. */
export function factsOf(
  session: OnlineSession,
  reputation: Reputation,
  { held, minTrustLevel }: StandingRules,
  now: number,
): ProviderFacts {
  const { identity, slots } = session.registration;
  const trust = session.trust();
  const state = stateAt(reputation, now);
  return {
    providerId: identity.providerId,
    serialNumber: identity.attestation.serial_number,
    quarantined: held || state === 'quarantined',
    draining: session.draining,
    away: session.away,
    keyNotAfter: session.key?.notAfter ?? 0,
    trustLevel: trust.level,
    ...(meetsFloor(trust.level, minTrustLevel) ? {} : { belowMinTrust: true }),
    trustValidUntil: trust.validUntil,
    heldOffUntil: session.heldOffUntil,
    slots,
    usedSlots: session.jobs.used,
    backlogged: session.isBacklogged,
    failuresInARow: recentFailures(reputation, now),
    ...(state === 'cooling_down' || state === 'on_probation' ? { restraint: state } : {}),
    host: session.record.host,
  };
}

/** `online`, or the lasting reason why it takes no jobs at `now`. */
export function statusOf(facts: ProviderFacts, now: number): ProviderStatus {
  const gate = gateOf(facts, now);
  if (gate === 'cooling_down') return gate;
  if (gate === null || isPassing(gate)) return 'online';
  return gate as Exclude<ProviderStatus, 'online'>;
}

/** Whether jobs may come, now or soon. */
export function isServing(facts: ProviderFacts, now: number): boolean {
  const gate = gateOf(facts, now);
  return gate === null || isPassing(gate);
}
