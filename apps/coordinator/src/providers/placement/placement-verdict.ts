/**
 * What one placement decision meant for one provider: a code of a closed list, and the number that goes with it. Pure, and cheap
 * enough to be asked in the middle of a placement: it looks at this provider alone.
 */
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

/** Why a provider was chosen. `named`: the client asked for this machine. */
export type ChosenReason = Exclude<Choice<unknown>['why'], 'alternate'> | 'named';
/** Why one that could have had the request was passed over. */
export type PassedReason = 'slower' | 'near_tie' | 'measuring_other' | 'overdue_other' | 'warm_other' | 'probing_other';
export type NotEligibleReason = Exclude<IneligibleReason, UnavailableReason | 'other_serial'>;

export type PlacementVerdict =
  | { readonly outcome: 'chosen'; readonly reason: ChosenReason; readonly ms: null }
  /** `ms`: how much more time than on the best machine, with `slower`. */
  | { readonly outcome: 'not_chosen'; readonly reason: PassedReason; readonly ms: number | null }
  /** It takes no request of anyone. `ms`: what is left of the pause, with `held_off`. */
  | { readonly outcome: 'gate'; readonly reason: UnavailableReason; readonly ms: number | null }
  /** It may not have this one request. */
  | { readonly outcome: 'not_eligible'; readonly reason: NotEligibleReason; readonly ms: null };

/** What a machine as quick as the best is told when another came first for a reason of its own. */
const PASSED_REASONS: Readonly<Partial<Record<Choice<unknown>['why'], PassedReason>>> = {
  measuring: 'measuring_other',
  overdue: 'overdue_other',
  warm: 'warm_other',
  probing: 'probing_other',
};

/** The first choice of a decision, as its provider is told of it. */
export function chosenVerdict({ why }: Choice<unknown>, request: PlacementRequest): PlacementVerdict & { outcome: 'chosen' } {
  if (namesProvider(request)) return { outcome: 'chosen', reason: 'named', ms: null };
  return { outcome: 'chosen', reason: why === 'alternate' ? 'near_tie' : why, ms: null };
}

/** What a decision meant for a provider that was not its first choice; null when it says nothing about it. */
export function passedVerdict<S>(
  member: PoolMember<S>,
  request: PlacementRequest,
  decision: SchedulingDecision<S>,
  { now, constants }: { readonly now: number; readonly constants: SchedulerConstants },
): PlacementVerdict | null {
  const { facts, speed } = member;
  const unfit = ineligibleReason(facts, request, now);
  if (unfit === 'other_serial') return null;
  if (unfit === 'failed_before' || unfit === 'below_trust_floor') return { outcome: 'not_eligible', reason: unfit, ms: null };
  if (unfit !== null) return { outcome: 'gate', reason: unfit, ms: unfit === 'held_off' ? facts.backoffUntil - now : null };
  if (decision.kind !== 'placed') return null;
  const { bestMs, ordered } = decision;
  const costMs = costOf(costModelOf(traitsOf(facts, speed, member, now), constants), request.work);
  if (costMs > nearTieMs(bestMs, constants)) return { outcome: 'not_chosen', reason: 'slower', ms: costMs - bestMs };
  return { outcome: 'not_chosen', reason: PASSED_REASONS[ordered[0].why] ?? 'near_tie', ms: null };
}
