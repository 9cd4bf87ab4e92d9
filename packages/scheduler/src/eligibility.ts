/** Eligibility of providers: a closed list of reasons why a provider may not get a job. */
import type { ModelOffer, ProviderId, TrustLevel } from '@inference/protocol';

/** Placement facts of one provider, equal for all its models. Times in milliseconds. */
export interface ProviderFacts {
  readonly providerId: ProviderId;
  readonly serialNumber: string;
  readonly isQuarantined: boolean;
  readonly isDraining: boolean;
  /** The provider reported itself unavailable: paused by the owner, by the schedule or by the machine's state. */
  readonly isAway?: boolean | undefined;
  /** End of the sealing key; 0: no key. */
  readonly keyNotAfter: number;
  /** Level that the evidence supports, a fresh challenge included; null: no trust. */
  readonly trustLevel: TrustLevel | null;
  /** The trust level is below the operator's minimum. */
  readonly isBelowMinTrust?: boolean | undefined;
  /** End of the validity of `trustLevel`. */
  readonly trustValidUntil: number;
  /** End of the pause after the provider reported full slots. */
  readonly backoffUntil: number;
  readonly slots: number;
  readonly usedSlots: number;
  /** Unsent bytes of the connection leave no room for another job. */
  readonly isBacklogged?: boolean | undefined;
  /** Failures caused by the provider that have not expired. */
  readonly recentFailures: number;
  /** The agent serves jobs of a model that the body names as a fallback. */
  readonly servesFallbackModels?: boolean | undefined;
  /** The agent serves requests for several choices. */
  readonly servesChoices?: boolean | undefined;
  /** After failures: paused, or one job at a time until a job succeeds. */
  readonly restriction?: 'cooling_down' | 'on_probation' | undefined;
  readonly host: HostState;
}

/** Reported state of the machine. */
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

/** Reason why a provider may not serve this request. */
export type IneligibleReason = UnavailableReason | 'other_serial' | 'failed_before' | 'below_trust_floor';

/** Providers and offers that a client's routing preferences exclude or require. */
export interface ProviderFilter {
  readonly ignoredIds: ReadonlySet<ProviderId>;
  /** Every claimant of a listed serial number is excluded, proven or not. */
  readonly ignoredSerials: ReadonlySet<string>;
  /** Accepted labels, in lower case. Null: any. */
  readonly quantizations: ReadonlySet<string> | null;
  /** The model is a fallback of the body; agents of earlier versions refuse such jobs. */
  readonly servesFallbackModels: boolean;
  /** The request is for several choices; agents of earlier versions refuse such jobs. */
  readonly servesChoices: boolean;
  /** Images that the request holds. 0: none. */
  readonly images: number;
}

/** Traits of a provider's offer that filters compare. */
export interface OfferTraits {
  readonly quantization: string;
  /** Maximum images per request. 0: the model reads none. */
  readonly maxImages: number;
}

export function offerTraits({ quantization, vision }: Pick<ModelOffer, 'quantization' | 'vision'>): OfferTraits {
  return { quantization, maxImages: vision?.max_images ?? 0 };
}

/** A filter that accepts every provider. */
export const NO_FILTER: ProviderFilter = {
  ignoredIds: new Set(),
  ignoredSerials: new Set(),
  quantizations: null,
  servesFallbackModels: false,
  servesChoices: false,
  images: 0,
};

/** Whether the filter accepts a provider with this offer. */
export function passesFilter(
  { ignoredIds, ignoredSerials, quantizations, servesFallbackModels, servesChoices, images }: ProviderFilter,
  facts: Pick<ProviderFacts, 'providerId' | 'serialNumber' | 'servesFallbackModels' | 'servesChoices'>,
  { quantization, maxImages }: OfferTraits,
): boolean {
  if (ignoredIds.has(facts.providerId) || ignoredSerials.has(facts.serialNumber)) return false;
  if (servesFallbackModels && facts.servesFallbackModels !== true) return false;
  if (servesChoices && facts.servesChoices !== true) return false;
  if (images > maxImages) return false;
  return quantizations === null || quantizations.has(quantization.toLowerCase());
}

/** Requirements of a request, apart from speed. */
export interface PlacementConstraints {
  /** Serial number of the only machine that may serve. Null: any. */
  readonly providerSerial: string | null;
  /** The only provider that may serve. Left out or null: any. */
  readonly providerId?: ProviderId | null;
  /** The only providers that may serve: recipients of a sealed request, or preferences. Left out or null: any. */
  readonly candidates?: ReadonlySet<ProviderId> | null;
  /** Left out or null: no provider is excluded. */
  readonly filter?: ProviderFilter | null;
  /** Providers that failed this job earlier. */
  readonly exclude: ReadonlySet<ProviderId>;
  /** Minimum trust level. Null: any. */
  readonly trustFloor: TrustLevel | null;
  /** Only providers without a running job. */
  readonly idleOnly?: boolean;
}

/** Whether the client named the machine or provider that may serve. */
export function namesProvider({ providerSerial, providerId }: Pick<PlacementConstraints, 'providerSerial' | 'providerId'>): boolean {
  return providerSerial !== null || (providerId ?? null) !== null;
}

/** Constraints that select providers. */
export type ProviderSelection = Pick<PlacementConstraints, 'providerSerial' | 'providerId' | 'candidates' | 'filter'>;

/** Whether the request names or filters providers. */
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

/** Claimants of a serial number that count. Of several, only claimants with a certificate chain: serial numbers are public. */
export function resolveClaimants<M extends { readonly facts: Pick<ProviderFacts, 'trustLevel'> }>(named: readonly M[]): readonly M[] {
  if (named.length < 2) return named;
  return named.filter(({ facts }) => facts.trustLevel === 'hardware');
}

/** Reason why this provider may not serve this request, or null. Several claimants of a serial number: see {@link resolveClaimants}. */
export function ineligibleReason(facts: ProviderFacts, constraints: PlacementConstraints, now: number): IneligibleReason | null {
  if ((constraints.providerId ?? facts.providerId) !== facts.providerId) return 'other_serial';
  if (constraints.providerSerial !== null && facts.serialNumber !== constraints.providerSerial) return 'other_serial';
  if (constraints.candidates?.has(facts.providerId) === false) return 'other_serial';
  if (constraints.exclude.has(facts.providerId)) return 'failed_before';
  const reason = unavailableReason(facts, now) ?? (constraints.idleOnly === true && facts.usedSlots > 0 ? 'no_free_slot' : null);
  if (reason !== null && !isTransient(reason)) return reason;
  return meetsTrustFloor(facts.trustLevel, constraints.trustFloor) ? reason : 'below_trust_floor';
}

/** Whether the reason may pass while a request waits. */
export function isTransient(reason: UnavailableReason): boolean {
  switch (reason) {
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
