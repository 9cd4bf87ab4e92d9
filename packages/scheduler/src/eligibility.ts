/** Rules that decide whether a provider may get a job. A provider that may not is described by one reason from a closed list. */
import type { ModelOffer, ProviderId, TrustLevel } from '@inference/protocol';

/** Facts about a provider for placement (the choice of a provider for a job), the same for all its models. Times in milliseconds. */
export interface ProviderFacts {
  readonly providerId: ProviderId;
  readonly serialNumber: string;
  readonly isQuarantined: boolean;
  readonly isDraining: boolean;
  /** The provider reported that it is unavailable: paused by its owner, its schedule or the machine's state. */
  readonly isAway?: boolean | undefined;
  /** Expiry of the sealing key; 0: no key. */
  readonly keyNotAfter: number;
  /** Level from the evidence, which includes a recent challenge; null: no trust. */
  readonly trustLevel: TrustLevel | null;
  readonly isBelowMinTrust?: boolean | undefined;
  readonly trustValidUntil: number;
  /** End of a pause, for example after the provider reported full slots. */
  readonly backoffUntil: number;
  /** Number of jobs that the provider runs at the same time. */
  readonly slots: number;
  readonly usedSlots: number;
  /** The connection's send buffer is too full for another job. */
  readonly isBacklogged?: boolean | undefined;
  /** Failures caused by the provider that have not expired. */
  readonly recentFailures: number;
  /** The agent accepts jobs for a fallback model of the request. */
  readonly servesFallbackModels?: boolean | undefined;
  /** The agent accepts requests for several choices (`n` above 1). */
  readonly servesChoices?: boolean | undefined;
  /** After failures: no jobs during a backoff, then one job at a time until one succeeds. */
  readonly restriction?: 'cooling_down' | 'on_probation' | undefined;
  readonly host: HostState;
}

export interface HostState {
  readonly thermal: 'nominal' | 'fair' | 'serious' | 'critical';
  readonly memoryPressure: 'normal' | 'warning' | 'critical';
  readonly power: 'mains' | 'battery' | 'low_battery';
}

/** Assumed for machines that report no state. */
export const DEFAULT_HOST_STATE: HostState = { thermal: 'nominal', memoryPressure: 'normal', power: 'mains' };

/** Reason why a provider currently gets no job of any request. */
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

/** Reason why a provider may not serve this request. `other_serial`: the request names another id or serial number, or other candidates. */
export type IneligibleReason = UnavailableReason | 'other_serial' | 'failed_before' | 'below_trust_floor';

/** Conditions on providers and their models, from the client's routing preferences and from what the request contains. */
export interface ProviderFilter {
  readonly ignoredIds: ReadonlySet<ProviderId>;
  /** Excludes every provider that reports a listed serial number, with or without proof. */
  readonly ignoredSerials: ReadonlySet<string>;
  /** Accepted quantization labels, in lower case. Null: any. */
  readonly quantizations: ReadonlySet<string> | null;
  /** Requires an agent that accepts jobs for a fallback model; earlier versions refuse them. */
  readonly servesFallbackModels: boolean;
  /** Requires an agent that accepts requests for several choices; earlier versions refuse them. */
  readonly servesChoices: boolean;
  readonly images: number;
}

/** Properties of a model at a provider (its offer) that a {@link ProviderFilter} compares. */
export interface OfferTraits {
  readonly quantization: string;
  /** Maximum input images per request; 0 for models without image input. */
  readonly maxImages: number;
}

export function offerTraits({ quantization, vision }: Pick<ModelOffer, 'quantization' | 'vision'>): OfferTraits {
  return { quantization, maxImages: vision?.max_images ?? 0 };
}

export const NO_FILTER: ProviderFilter = {
  ignoredIds: new Set(),
  ignoredSerials: new Set(),
  quantizations: null,
  servesFallbackModels: false,
  servesChoices: false,
  images: 0,
};

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

/** Which providers may serve a request, regardless of cost. */
export interface PlacementConstraints {
  /** Serial number of the only machine that may serve the request. Null: any. */
  readonly providerSerial: string | null;
  /** The only provider that may serve the request. Absent or null: any. */
  readonly providerId?: ProviderId | null;
  /** The only providers that may serve: those that the client encrypted the request to, or prefers. Absent or null: any. */
  readonly candidates?: ReadonlySet<ProviderId> | null;
  /** Absent or null: no filter. */
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

/** The constraints by which a client names or filters providers. */
export type ProviderSelection = Pick<PlacementConstraints, 'providerSerial' | 'providerId' | 'candidates' | 'filter'>;

/** Whether the request names or filters providers. */
export function selectsProviders(constraints: ProviderSelection): boolean {
  return namesProvider(constraints) || (constraints.candidates ?? null) !== null || (constraints.filter ?? null) !== null;
}

/** The first reason why the provider gets no job at `now`, lasting reasons before transient ones; null: available. */
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
 * Given the providers that report one serial number: if there are several, only those that proved it with a certificate chain.
 *
 * A serial number is no secret, so another machine can report it.
 */
export function resolveClaimants<M extends { readonly facts: Pick<ProviderFacts, 'trustLevel'> }>(claimants: readonly M[]): readonly M[] {
  if (claimants.length < 2) return claimants;
  return claimants.filter(({ facts }) => facts.trustLevel === 'hardware');
}

/** Reason why this provider may not serve this request, or null. Callers apply {@link resolveClaimants} first. */
export function ineligibleReason(facts: ProviderFacts, constraints: PlacementConstraints, now: number): IneligibleReason | null {
  if ((constraints.providerId ?? facts.providerId) !== facts.providerId) return 'other_serial';
  if (constraints.providerSerial !== null && facts.serialNumber !== constraints.providerSerial) return 'other_serial';
  if (constraints.candidates?.has(facts.providerId) === false) return 'other_serial';
  if (constraints.exclude.has(facts.providerId)) return 'failed_before';
  const reason = unavailableReason(facts, now) ?? (constraints.idleOnly === true && facts.usedSlots > 0 ? 'no_free_slot' : null);
  if (reason !== null && !isTransient(reason)) return reason;
  return meetsTrustFloor(facts.trustLevel, constraints.trustFloor) ? reason : 'below_trust_floor';
}

/** Whether the reason may pass soon enough for a request to wait. */
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

/** Whether a level is at least the minimum. Without a level (null), never. */
export function meetsTrustFloor(level: TrustLevel | null, floor: TrustLevel | null): boolean {
  if (level === null) return false;
  return floor !== 'hardware' || level === 'hardware';
}
