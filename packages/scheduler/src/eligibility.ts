/**
 * Conditions for giving a provider a job: a closed list of reasons against it, decided by pure functions of the provider's facts,
 * the request and the clock. Transient reasons are distinguished from lasting ones.
 */
import type { ProviderId, TrustLevel } from '@inference/protocol';

/** Placement facts of one provider, equal for all its models. Times in milliseconds. */
export interface ProviderFacts {
  readonly providerId: ProviderId;
  readonly serialNumber: string;
  readonly isQuarantined: boolean;
  readonly isDraining: boolean;
  /** The provider reported that it takes no jobs for now: by its owner, its schedule, or the state of the machine. */
  readonly isAway?: boolean | undefined;
  /** End of the sealing key; 0: no key. */
  readonly keyNotAfter: number;
  /** Level that the evidence supports, a fresh challenge included; null: no trust. */
  readonly trustLevel: TrustLevel | null;
  /** The trust level is below the operator's minimum. */
  readonly isBelowMinTrust?: boolean | undefined;
  /** From when on `trustLevel` must be computed again. */
  readonly trustValidUntil: number;
  /** End of the pause after the provider reported itself full. */
  readonly backoffUntil: number;
  readonly slots: number;
  readonly usedSlots: number;
  /** So many bytes are unsent that a new job may exceed the bound. */
  readonly isBacklogged?: boolean | undefined;
  /** Failures by the provider's fault that still count. */
  readonly recentFailures: number;
  /** The agent serves jobs of a model that the body names as a fallback. */
  readonly servesFallbackModels?: boolean | undefined;
  /** Paused because jobs failed, or given one job at a time until one succeeds. */
  readonly restriction?: 'cooling_down' | 'on_probation' | undefined;
  readonly host: HostState;
}

/** State of the machine, as far as reported. */
export interface HostState {
  readonly thermal: 'nominal' | 'fair' | 'serious' | 'critical';
  readonly memoryPressure: 'normal' | 'warning' | 'critical';
  readonly power: 'mains' | 'battery' | 'low_battery';
}

/** Assumed for machines that report nothing. */
export const DEFAULT_HOST_STATE: HostState = { thermal: 'nominal', memoryPressure: 'normal', power: 'mains' };

/** Why a provider takes no jobs at all now. */
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

/** Why a provider may not serve this one request. */
export type IneligibleReason = UnavailableReason | 'other_serial' | 'failed_before' | 'below_trust_floor';

/** Providers that a client's routing preferences leave out, and offers that they demand. */
export interface ProviderFilter {
  readonly ignoredIds: ReadonlySet<ProviderId>;
  /** All claimants of these serial numbers are left out, proven or not. */
  readonly ignoredSerials: ReadonlySet<string>;
  /** Labels in lower case. Null: any. */
  readonly quantizations: ReadonlySet<string> | null;
  /** The job runs a model that the body names as a fallback, which agents of earlier versions refuse. */
  readonly servesFallbackModels: boolean;
}

/** Whether the filter leaves in a provider with an offer of this quantization. */
export function passesFilter(
  { ignoredIds, ignoredSerials, quantizations, servesFallbackModels }: ProviderFilter,
  facts: Pick<ProviderFacts, 'providerId' | 'serialNumber' | 'servesFallbackModels'>,
  quantization: string,
): boolean {
  if (ignoredIds.has(facts.providerId) || ignoredSerials.has(facts.serialNumber)) return false;
  if (servesFallbackModels && facts.servesFallbackModels !== true) return false;
  return quantizations === null || quantizations.has(quantization.toLowerCase());
}

/** Requirements of a request, apart from speed. */
export interface PlacementConstraints {
  /** Serial number that the client named: only that machine may serve. */
  readonly providerSerial: string | null;
  /** Provider that the client named: only that provider may serve. */
  readonly providerId?: ProviderId | null;
  /** Providers that the client sealed the request to, or prefers: only these may serve. Left out or null: any. */
  readonly candidates?: ReadonlySet<ProviderId> | null;
  /** Left out or null: none is left out. */
  readonly filter?: ProviderFilter | null;
  /** Providers that already failed this job. */
  readonly exclude: ReadonlySet<ProviderId>;
  /** Least trust, or null: any level. */
  readonly trustFloor: TrustLevel | null;
  /** Only a provider without any other job. */
  readonly idleOnly?: boolean;
}

/** Whether the client named the machine or provider that may serve. */
export function namesProvider({ providerSerial, providerId }: Pick<PlacementConstraints, 'providerSerial' | 'providerId'>): boolean {
  return providerSerial !== null || (providerId ?? null) !== null;
}

/** Constraints that select providers. */
export type ProviderSelection = Pick<PlacementConstraints, 'providerSerial' | 'providerId' | 'candidates' | 'filter'>;

/** Whether only particular providers may serve: the named one, the candidates, or those that pass the filter. */
export function selectsProviders(constraints: ProviderSelection): boolean {
  return namesProvider(constraints) || (constraints.candidates ?? null) !== null || (constraints.filter ?? null) !== null;
}

/** The first reason against any job at `now`, lasting reasons first, or null. */
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
 * Resolves a serial number to its claimants. Serial numbers are public, so anyone can claim one: a certificate chain decides, and
 * several claims without a chain all fail.
 */
export function resolveClaimants<M extends { readonly facts: Pick<ProviderFacts, 'trustLevel'> }>(named: readonly M[]): readonly M[] {
  if (named.length < 2) return named;
  return named.filter(({ facts }) => facts.trustLevel === 'hardware');
}

/** Why this provider may not serve this request, or null. For serial numbers see also {@link resolveClaimants}. */
export function ineligibleReason(facts: ProviderFacts, demands: PlacementConstraints, now: number): IneligibleReason | null {
  if ((demands.providerId ?? facts.providerId) !== facts.providerId) return 'other_serial';
  if (demands.providerSerial !== null && facts.serialNumber !== demands.providerSerial) return 'other_serial';
  if (demands.candidates?.has(facts.providerId) === false) return 'other_serial';
  if (demands.exclude.has(facts.providerId)) return 'failed_before';
  const gate = unavailableReason(facts, now) ?? (demands.idleOnly === true && facts.usedSlots > 0 ? 'no_free_slot' : null);
  if (gate !== null && !isTransient(gate)) return gate;
  return meetsTrustFloor(facts.trustLevel, demands.trustFloor) ? gate : 'below_trust_floor';
}

/** Whether the reason may pass while a request waits. */
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
