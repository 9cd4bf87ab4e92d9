/**
 * What must hold of a provider before it may get a job: one closed list of reasons why not, each told by a pure function of
 * the provider's facts, the request and the clock. What waiting may change is told apart from what it will not.
 */
import type { ProviderId, TrustLevel } from '@inference/protocol';

/** What placement goes by, of one provider and all its models alike. Times in milliseconds. */
export interface ProviderFacts {
  readonly providerId: ProviderId;
  readonly serialNumber: string;
  readonly isQuarantined: boolean;
  readonly isDraining: boolean;
  /** It takes no jobs for now, by its own word: its owner or its schedule wants that, or the machine. */
  readonly isAway?: boolean | undefined;
  /** End of the sealing key; 0 when there is none. */
  readonly keyNotAfter: number;
  /** What its evidence supports (a fresh challenge is part of that), or null: no trust at all. */
  readonly trustLevel: TrustLevel | null;
  /** Its trust level is below the least that the operator admits to jobs. */
  readonly isBelowMinTrust?: boolean | undefined;
  /** From when on `trustLevel` must be computed again. */
  readonly trustValidUntil: number;
  /** Until when it is left alone, because it said that it is full. */
  readonly backoffUntil: number;
  readonly slots: number;
  readonly usedSlots: number;
  /** So much waits to be sent to it that a new job may exceed the bound. */
  readonly isBacklogged?: boolean | undefined;
  /** Failures that were its fault and still count. */
  readonly recentFailures: number;
  /** It is left alone for a while because jobs failed, or gets one at a time until one has ended well. */
  readonly restriction?: 'cooling_down' | 'on_probation' | undefined;
  readonly host: HostState;
}

/** How the machine itself is, as far as it tells. */
export interface HostState {
  readonly thermal: 'nominal' | 'fair' | 'serious' | 'critical';
  readonly memoryPressure: 'normal' | 'warning' | 'critical';
  readonly power: 'mains' | 'battery' | 'low_battery';
}

/** Taken for a machine that does not tell. */
export const DEFAULT_HOST_STATE: HostState = { thermal: 'nominal', memoryPressure: 'normal', power: 'mains' };

/** Why a provider takes no jobs of anyone now. */
export type UnavailableReason =
  | 'quarantined'
  | 'draining'
  | 'away'
  | 'key_expired'
  | 'untrusted'
  | 'below_min_trust_level'
  | 'low_battery'
  | 'too_hot'
  | 'no_memory'
  | 'held_off'
  | 'cooling_down'
  | 'on_probation'
  | 'no_free_slot';

/** Why a provider may not have this one request. */
export type IneligibleReason = UnavailableReason | 'other_serial' | 'failed_before' | 'below_trust_floor';

/** What a request asks of a provider, whatever its speed. */
export interface PlacementConstraints {
  /** Only this machine, when the client named one. */
  readonly providerSerial: string | null;
  /** Only this provider, when the client named one. */
  readonly providerId?: ProviderId | null;
  /** Providers that already failed this job. */
  readonly exclude: ReadonlySet<ProviderId>;
  /** Least trust, or null: any level. */
  readonly trustFloor: TrustLevel | null;
  /** Only a machine that has no other job. */
  readonly idleOnly?: boolean;
}

/** Whether the client named the machine that may serve. */
export function namesProvider({ providerSerial, providerId }: Pick<PlacementConstraints, 'providerSerial' | 'providerId'>): boolean {
  return providerSerial !== null || (providerId ?? null) !== null;
}

/** The first gate that is closed at `now`, the lasting ones first, or null. */
export function unavailableReason(facts: ProviderFacts, now: number): UnavailableReason | null {
  if (facts.isQuarantined) return 'quarantined';
  if (facts.isDraining) return 'draining';
  if (facts.isAway === true) return 'away';
  if (facts.keyNotAfter <= now) return 'key_expired';
  if (facts.trustLevel === null || facts.trustValidUntil <= now) return 'untrusted';
  if (facts.isBelowMinTrust === true) return 'below_min_trust_level';
  if (facts.host.power === 'low_battery') return 'low_battery';
  if (facts.host.thermal === 'critical') return 'too_hot';
  if (facts.host.memoryPressure === 'critical') return 'no_memory';
  if (facts.backoffUntil > now) return 'held_off';
  if (facts.restriction !== undefined) return facts.restriction;
  return facts.usedSlots >= facts.slots || facts.isBacklogged === true ? 'no_free_slot' : null;
}

/**
 * Resolves a serial number to those of the machines that claim it. Serial numbers are published, so anyone can claim another's: a
 * certificate chain decides, and of several claims without one none counts.
 */
export function resolveClaimants<M extends { readonly facts: ProviderFacts }>(named: readonly M[]): readonly M[] {
  if (named.length < 2) return named;
  return named.filter(({ facts }) => facts.trustLevel === 'hardware');
}

/** Why this provider may not have this request, or null: it may. Of serial numbers see also {@link resolveClaimants}. */
export function ineligibleReason(facts: ProviderFacts, demands: PlacementConstraints, now: number): IneligibleReason | null {
  if ((demands.providerId ?? facts.providerId) !== facts.providerId) return 'other_serial';
  if (demands.providerSerial !== null && facts.serialNumber !== demands.providerSerial) return 'other_serial';
  if (demands.exclude.has(facts.providerId)) return 'failed_before';
  const gate = unavailableReason(facts, now) ?? (demands.idleOnly === true && facts.usedSlots > 0 ? 'no_free_slot' : null);
  if (gate !== null && !isTransient(gate)) return gate;
  return meetsTrustFloor(facts.trustLevel, demands.trustFloor) ? gate : 'below_trust_floor';
}

/** Whether the gate may open by itself within the time that a request waits. */
export function isTransient(gate: UnavailableReason): boolean {
  switch (gate) {
    case 'too_hot':
    case 'no_memory':
    case 'held_off':
    case 'cooling_down':
    case 'on_probation':
    case 'no_free_slot':
      return true;
    case 'quarantined':
    case 'draining':
    case 'away':
    case 'key_expired':
    case 'untrusted':
    case 'below_min_trust_level':
    case 'low_battery':
      return false;
  }
}

/** Whether a level is at least the floor. */
export function meetsTrustFloor(level: TrustLevel | null, floor: TrustLevel | null): boolean {
  if (level === null) return false;
  return floor !== 'hardware' || level === 'hardware';
}
