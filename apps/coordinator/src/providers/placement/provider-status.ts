/** Derives the facts that the scheduler needs about a provider, and its published status, from its session and reputation. */
import type { ProviderStatusCode, TrustLevel } from '@inference/protocol';
import { isTransient, meetsTrustFloor, type ProviderFacts, type UnavailableReason, unavailableReason } from '@inference/scheduler';
import { type Reputation, recentFailures, stateAt } from '../reputation/reputation.js';
import type { OnlineSession } from '../session/provider-session.js';

/** Published status. Most short-lived states are not included: for example, a provider with full slots or on probation is `online`. */
export type ProviderStatus = ProviderStatusCode;

type LastingReason = Exclude<UnavailableReason, 'too_hot' | 'no_memory' | 'held_off' | 'on_probation' | 'no_free_slot'>;

interface StatusRules {
  readonly isQuarantined: boolean;
  readonly minTrustLevel: TrustLevel;
}

/** `now`: milliseconds since 1970. */
export function providerFacts(
  session: OnlineSession,
  reputation: Reputation,
  { isQuarantined, minTrustLevel }: StatusRules,
  now: number,
): ProviderFacts {
  const { identity, slots, servesFallbackModels, servesChoices } = session.registration;
  const trust = session.evidence.verdict();
  const state = stateAt(reputation, now);
  return {
    providerId: identity.providerId,
    serialNumber: identity.attestation.serial_number,
    isQuarantined: isQuarantined || state === 'quarantined',
    isDraining: session.isDraining,
    isAway: session.isAway,
    keyNotAfter: session.evidence.key?.notAfter ?? 0,
    trustLevel: trust.level,
    ...(meetsTrustFloor(trust.level, minTrustLevel) ? {} : { isBelowMinTrust: true }),
    trustValidUntil: trust.validUntil,
    backoffUntil: session.backoffUntil,
    slots,
    usedSlots: session.jobs.usedSlots,
    isBacklogged: session.isBacklogged,
    recentFailures: recentFailures(reputation, now),
    servesFallbackModels,
    servesChoices,
    ...(state === 'cooling_down' || state === 'on_probation' ? { restriction: state } : {}),
    host: session.statistics.host,
  };
}

/** `online`, or the reason why the provider gets no jobs. Of the reasons that end by themselves soon, only `cooling_down` is published. */
export function statusOf(facts: ProviderFacts, now: number): ProviderStatus {
  const gate = unavailableReason(facts, now);
  if (gate === 'cooling_down') return gate;
  if (gate === null || isTransient(gate)) return 'online';
  return gate as LastingReason;
}

/** Whether the provider takes jobs, now or after a reason that ends by itself soon, such as full slots. */
export function isServing(facts: ProviderFacts, now: number): boolean {
  const gate = unavailableReason(facts, now);
  return gate === null || isTransient(gate);
}
