/**
 * `withProbe` gives some jobs to providers that are restricted after failures, so that they can prove to work again.
 *
 * On probation, a provider gets one job at a time, by lottery or when no other can take the job. Before, while it cools down, it gets a job
 * only if waiting for others would not help.
 */

import { costModelOf, estimateOf, traitsOf } from '../cost/job-cost.js';
import { type IneligibleReason, ineligibleReason, selectsProviders } from '../eligibility.js';
import type { PoolMember } from '../pool/provider-groups.js';
import type { PoolView } from '../pool/provider-pool.js';
import { selectedMembers } from './provider-selection.js';
import type { Choice, PlacementRequest, SchedulingDecision } from './schedule.js';

interface ProbeRules<S> {
  readonly now: number;
  readonly random: () => number;
  /** Whether the provider is on probation after a false answer. By lottery, it then gets only `revocable` requests. */
  readonly isDistrusted: (member: PoolMember<S>) => boolean;
}

/** Share of eligible jobs that go to a provider on probation although an unrestricted provider can serve them. */
const PROBING_SHARE = 0.25;

/**
 * May put a provider on probation first in a decision. If nothing was placed, uses a restricted provider as the last resort.
 *
 * `revocable`: the answer is verified before delivery, so that a false one can be discarded.
 */
export function withProbe<S>(
  snapshot: PoolView<S>,
  request: PlacementRequest & { readonly revocable?: boolean },
  decision: SchedulingDecision<S>,
  rules: ProbeRules<S>,
): SchedulingDecision<S> {
  if (request.idleOnly === true) return decision;
  const { now, random } = rules;
  const { trials, cooling } = restrictedMembers(snapshot, request, now);
  if (decision.kind === 'placed') {
    // Retries, sorted requests and requests that select providers never probe.
    if (request.exclude.size > 0 || selectsProviders(request) || (request.sort ?? null) !== null || trials.length === 0) return decision;
    const fit = trials.filter((member) => request.revocable === true || !rules.isDistrusted(member));
    if (fit.length === 0 || random() >= PROBING_SHARE) return decision;
    return { ...decision, ordered: [choiceOf(drawMember(fit, random), request, snapshot, now), ...decision.ordered] };
  }
  const last = trials.length > 0 ? trials : hasAlternative(snapshot, request, now) ? [] : cooling;
  if (last.length === 0) return decision;
  const choice = choiceOf(drawMember(last, random), request, snapshot, now);
  return { kind: 'placed', ordered: [choice], bestMs: choice.estimate.costMs, expired: decision.expired };
}

/** Idle providers whose only reason against the request is their restriction. */
function restrictedMembers<S>(
  snapshot: PoolView<S>,
  request: PlacementRequest,
  now: number,
): { trials: PoolMember<S>[]; cooling: PoolMember<S>[] } {
  const trials: PoolMember<S>[] = [];
  const cooling: PoolMember<S>[] = [];
  for (const member of candidates(snapshot, request, RESTRICTED)) {
    if (member.facts.usedSlots > 0) continue;
    const reason = ineligibleReason(member.facts, request, now);
    if (reason === 'on_probation') trials.push(member);
    else if (reason === 'cooling_down') cooling.push(member);
  }
  return { trials, cooling };
}

/** Whether waiting helps: an unrestricted provider, or a busy restricted one, may soon be free. */
function hasAlternative<S>(snapshot: PoolView<S>, request: PlacementRequest, now: number): boolean {
  for (const { facts } of candidates(snapshot, request, BUSY)) {
    const reason = ineligibleReason(facts, request, now);
    if (reason === 'held_off' || reason === 'no_free_slot') return true;
  }
  for (const { facts } of candidates(snapshot, request, RESTRICTED)) {
    if (facts.usedSlots > 0 && RESTRICTED.has(ineligibleReason(facts, request, now))) return true;
  }
  return false;
}

const RESTRICTED: ReadonlySet<IneligibleReason | null> = new Set(['on_probation', 'cooling_down'] as const);
const BUSY: ReadonlySet<IneligibleReason | null> = new Set(['held_off', 'no_free_slot'] as const);

/** Members that are unavailable for one of `reasons`; all members if the request selects providers. */
function* candidates<S>(
  snapshot: PoolView<S>,
  request: PlacementRequest,
  reasons: ReadonlySet<IneligibleReason | null>,
): Iterable<PoolMember<S>> {
  if (selectsProviders(request)) yield* selectedMembers(snapshot, request);
  else for (const { reason, members } of snapshot.closed) if (reasons.has(reason)) yield* members;
}

function drawMember<S>(members: readonly PoolMember<S>[], random: () => number): PoolMember<S> {
  return members[Math.floor(random() * members.length)] as PoolMember<S>;
}

function choiceOf<S>(member: PoolMember<S>, { work }: PlacementRequest, { constants }: PoolView<S>, now: number): Choice<S> {
  const costModel = costModelOf(traitsOf(member.facts, member.placementSpeed, member, now), constants);
  return { member, estimate: estimateOf(costModel, work), why: 'probing' };
}
