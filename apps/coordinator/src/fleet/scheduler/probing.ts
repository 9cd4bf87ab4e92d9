/**
 * Gives machines that failed before a job to prove themselves with. Where others can take over, a share of the jobs; where
 * nobody else can have the job, this one; and when all that there are still cool down, they are not left alone after all, because
 * a machine that may fail is better than none. One job at a time, always.
 */
import type { Member, Snapshot } from './board.js';
import { estimateOf, tariffOf, traitsOf } from './cost.js';
import { type Ineligible, ineligibility, isNamed } from './gates.js';
import { type Choice, type Decision, namedMembers, type PlacementRequest } from './schedule.js';

export interface ProbeRules<S> {
  readonly now: number;
  readonly random: () => number;
  /** Whether the machine is on trial for lies, so that it gets only what is verified before anyone reads it. */
  readonly isDistrusted: (member: Member<S>) => boolean;
}

/** Share of the jobs that a machine on trial may be tried with, while others can have them. */
const PROBING_SHARE = 0.25;

/** The decision, with a machine on trial before the others or in place of nobody. `revocable`: nothing is delivered before it is verified. */
export function withProbe<S>(
  snapshot: Snapshot<S>,
  request: PlacementRequest & { readonly revocable?: boolean },
  decision: Decision<S>,
  rules: ProbeRules<S>,
): Decision<S> {
  if (request.idleOnly === true) return decision;
  const { now, random } = rules;
  const { trials, cooling } = restrainedOf(snapshot, request, now);
  if (decision.kind === 'placed') {
    // A job that failed once is no job to try others with.
    if (request.exclude.size > 0 || isNamed(request) || trials.length === 0) return decision;
    const fit = trials.filter((member) => request.revocable === true || !rules.isDistrusted(member));
    if (fit.length === 0 || random() >= PROBING_SHARE) return decision;
    return { ...decision, ordered: [choiceOf(drawn(fit, random), request, snapshot, now), ...decision.ordered] };
  }
  const last = trials.length > 0 ? trials : anyOther(snapshot, request, now) ? [] : cooling;
  if (last.length === 0) return decision;
  const choice = choiceOf(drawn(last, random), request, snapshot, now);
  return { kind: 'placed', ordered: [choice], bestMs: choice.estimate.costMs, lapsed: decision.lapsed };
}

/** Machines that may have the request but for what they did before, and have no other job. */
function restrainedOf<S>(snapshot: Snapshot<S>, request: PlacementRequest, now: number): { trials: Member<S>[]; cooling: Member<S>[] } {
  const trials: Member<S>[] = [];
  const cooling: Member<S>[] = [];
  for (const member of candidates(snapshot, request, RESTRAINED)) {
    if (member.facts.usedSlots > 0) continue;
    const reason = ineligibility(member.facts, request, now);
    if (reason === 'on_probation') trials.push(member);
    else if (reason === 'cooling_down') cooling.push(member);
  }
  return { trials, cooling };
}

/** Whether the request may soon get a place without trying anyone who cools down. */
function anyOther<S>(snapshot: Snapshot<S>, request: PlacementRequest, now: number): boolean {
  for (const { facts } of candidates(snapshot, request, BUSY)) {
    const reason = ineligibility(facts, request, now);
    if (reason === 'held_off' || reason === 'no_free_slot') return true;
  }
  for (const { facts } of candidates(snapshot, request, RESTRAINED)) {
    if (facts.usedSlots > 0 && RESTRAINED.has(ineligibility(facts, request, now))) return true;
  }
  return false;
}

const RESTRAINED: ReadonlySet<Ineligible | null> = new Set(['on_probation', 'cooling_down'] as const);
const BUSY: ReadonlySet<Ineligible | null> = new Set(['held_off', 'no_free_slot'] as const);

/** Those behind the gates; of a named machine, whatever it is. */
function* candidates<S>(snapshot: Snapshot<S>, request: PlacementRequest, gates: ReadonlySet<Ineligible | null>): Iterable<Member<S>> {
  if (isNamed(request)) yield* namedMembers(snapshot, request);
  else for (const { gate, members } of snapshot.closed) if (gates.has(gate)) yield* members;
}

function drawn<S>(members: readonly Member<S>[], random: () => number): Member<S> {
  return members[Math.floor(random() * members.length)] as Member<S>;
}

function choiceOf<S>(member: Member<S>, { work }: PlacementRequest, { constants }: Snapshot<S>, now: number): Choice<S> {
  const tariff = tariffOf(traitsOf(member.facts, member.speed, member, now), constants);
  return { member, estimate: estimateOf(tariff, work), why: 'probing' };
}
