/**
 * Chooses the provider for a job: one pure function over what the registry knows. The least loaded come first, equals in
 * random order, those that failed lately last; everyone who is passed over is named with the reason.
 */
import type { ProviderId } from '@inference/protocol';

/** What placement needs of a provider that serves the model. */
export interface Candidate {
  readonly providerId: ProviderId;
  readonly serialNumber: string;
  /** Why it takes no jobs now, or null. */
  readonly unroutable: Unroutable | null;
  readonly slots: number;
  readonly usedSlots: number;
  readonly failuresInARow: number;
}

export type Unroutable = 'draining' | 'quarantined' | 'untrusted' | 'key_expired' | 'held_off';

export interface PlacementRequest {
  /** Only this machine, when the client named one. */
  readonly providerSerial: string | null;
  /** Providers that already failed this job. */
  readonly exclude: ReadonlySet<ProviderId>;
}

export type PassedOver = Unroutable | 'other_serial' | 'failed_before' | 'no_free_slot';

export type Placement<C extends Candidate = Candidate> =
  | { readonly kind: 'placed'; readonly ordered: readonly [C, ...C[]]; readonly passedOver: ReadonlyMap<ProviderId, PassedOver> }
  /** Some could take it, but not now. */
  | { readonly kind: 'busy'; readonly passedOver: ReadonlyMap<ProviderId, PassedOver> }
  /** Waiting would not help: no machine of that serial serves the model, or all that do have failed the job or are out. */
  | { readonly kind: 'none'; readonly reason: 'no_such_serial' | 'all_failed' | 'none_routable' };

/** `random` gives numbers in [0, 1). */
export function chooseProvider<C extends Candidate>(
  candidates: readonly C[],
  request: PlacementRequest,
  random: () => number,
): Placement<C> {
  const passedOver = new Map<ProviderId, PassedOver>();
  const free: { readonly candidate: C; readonly tie: number }[] = [];
  for (const candidate of candidates) {
    const reason = reasonAgainst(candidate, request);
    if (reason === null) free.push({ candidate, tie: random() });
    else passedOver.set(candidate.providerId, reason);
  }
  free.sort((a, b) => rank(a.candidate, b.candidate) || a.tie - b.tie);
  const [first, ...rest] = free.map(({ candidate }) => candidate);
  if (first !== undefined) return { kind: 'placed', ordered: [first, ...rest], passedOver };
  const reasons = new Set(passedOver.values());
  if (reasons.has('no_free_slot') || reasons.has('held_off')) return { kind: 'busy', passedOver };
  if (reasons.has('failed_before')) return { kind: 'none', reason: 'all_failed' };
  const otherSerialsOnly = [...reasons].every((reason) => reason === 'other_serial');
  return { kind: 'none', reason: request.providerSerial !== null && otherSerialsOnly ? 'no_such_serial' : 'none_routable' };
}

function reasonAgainst(candidate: Candidate, request: PlacementRequest): PassedOver | null {
  if (request.providerSerial !== null && candidate.serialNumber !== request.providerSerial) return 'other_serial';
  if (request.exclude.has(candidate.providerId)) return 'failed_before';
  if (candidate.unroutable !== null) return candidate.unroutable;
  return candidate.usedSlots >= candidate.slots ? 'no_free_slot' : null;
}

function rank(a: Candidate, b: Candidate): number {
  return Math.min(a.failuresInARow, 3) - Math.min(b.failuresInARow, 3) || a.usedSlots / a.slots - b.usedSlots / b.slots;
}
