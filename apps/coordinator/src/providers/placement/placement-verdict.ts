/** Explains a placement decision from the view of one provider, as a code and a duration. `PlacementLog` records the result. */
import {
  type Choice,
  costModelOf,
  costOf,
  type IneligibleReason,
  ineligibleReason,
  namesProvider,
  nearTieMs,
  type PlacementRequest,
  type PoolMember,
  type SchedulerConstants,
  type SchedulingDecision,
  traitsOf,
  type UnavailableReason,
} from '@inference/scheduler';

/** Why a provider was chosen. `named`: the client named it. */
type ChosenReason = Exclude<Choice<unknown>['why'], 'alternate'> | 'named';
/**
 * Why an eligible provider was not chosen: it is slower, or as fast as the best (`near_tie`), or another was preferred (`…_other`).
 *
 * A provider is preferred to measure its unknown speed (`measuring`), after a long idle time (`overdue`), because it caches the prompt's
 * prefix (`warm`), or to test it on probation (`probing`).
 */
export type NotChosenReason = 'slower' | 'near_tie' | 'measuring_other' | 'overdue_other' | 'warm_other' | 'probing_other';
export type NotEligibleReason = Exclude<IneligibleReason, UnavailableReason | 'other_serial'>;

export type PlacementVerdict =
  | { readonly outcome: 'chosen'; readonly reason: ChosenReason; readonly ms: null }
  /** For `slower`, `ms` is the additional time compared with the best provider. */
  | { readonly outcome: 'not_chosen'; readonly reason: NotChosenReason; readonly ms: number | null }
  /** The provider takes no requests now. For `held_off`, `ms` is the rest of its backoff. */
  | { readonly outcome: 'gate'; readonly reason: UnavailableReason; readonly ms: number | null }
  /** The provider may not serve this request. */
  | { readonly outcome: 'not_eligible'; readonly reason: NotEligibleReason; readonly ms: null };

/** Reasons for a provider that was as fast as the chosen one, by the reason of that choice. */
const NOT_CHOSEN_REASONS: Readonly<Partial<Record<Choice<unknown>['why'], NotChosenReason>>> = {
  measuring: 'measuring_other',
  overdue: 'overdue_other',
  warm: 'warm_other',
  probing: 'probing_other',
};

export function chosenVerdict({ why }: Choice<unknown>, request: PlacementRequest): PlacementVerdict & { outcome: 'chosen' } {
  if (namesProvider(request)) return { outcome: 'chosen', reason: 'named', ms: null };
  return { outcome: 'chosen', reason: why === 'alternate' ? 'near_tie' : why, ms: null };
}

/** Verdict for a provider that was not chosen. Null: the decision does not concern the provider. */
export function passedVerdict<S>(
  member: PoolMember<S>,
  request: PlacementRequest,
  decision: SchedulingDecision<S>,
  { now, constants }: { readonly now: number; readonly constants: SchedulerConstants },
): PlacementVerdict | null {
  const { facts, placementSpeed } = member;
  const unfit = ineligibleReason(facts, request, now);
  if (unfit === 'other_serial') return null;
  if (unfit === 'failed_before' || unfit === 'below_trust_floor') return { outcome: 'not_eligible', reason: unfit, ms: null };
  if (unfit !== null) return { outcome: 'gate', reason: unfit, ms: unfit === 'held_off' ? facts.backoffUntil - now : null };
  if (decision.kind !== 'placed') return null;
  const { bestMs, ordered } = decision;
  const costMs = costOf(costModelOf(traitsOf(facts, placementSpeed, member, now), constants), request.work);
  if (costMs > nearTieMs(bestMs, constants)) return { outcome: 'not_chosen', reason: 'slower', ms: costMs - bestMs };
  return { outcome: 'not_chosen', reason: NOT_CHOSEN_REASONS[ordered[0].why] ?? 'near_tie', ms: null };
}
