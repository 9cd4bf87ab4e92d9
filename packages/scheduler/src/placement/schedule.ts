/**
 * `schedule` chooses providers for a request: the cheapest by estimated cost, at random among those of nearly the same cost.
 *
 * A share of the requests goes to providers of unknown speed or long idleness instead, to measure their speed.
 */
import type { ProviderId } from '@inference/protocol';
import { costOf, estimateOf, type LatencyEstimate, type Work } from '../cost/job-cost.js';
import { ineligibleReason, isTransient, meetsTrustFloor, type PlacementConstraints, selectsProviders } from '../eligibility.js';
import { isUnprovenGroup, type OpenGroup, type PoolMember } from '../pool/provider-groups.js';
import { type PoolView, ProviderPool } from '../pool/provider-pool.js';
import { comparedWork, groupsToMeasure, rankGroups, unprovenLimitMs } from './group-ranking.js';
import { type Drawn, MemberDraw } from './member-draw.js';
import { selectedMembers } from './provider-selection.js';

export interface PlacementRequest extends PlacementConstraints {
  readonly work: Work;
  /** Providers that probably have a cached prefix of the prompt. */
  readonly prefixCandidates?: readonly PrefixCandidate[];
  /** Estimated wait for a free slot of a provider with the model in memory, in milliseconds; null: unknown. */
  readonly expectedWaitMs?: number | null;
  /** Only providers that have the model in memory or are loading it. */
  readonly loadedOnly?: boolean;
  /** Sort criterion of the client's routing preferences. Absent or null: estimated completion time. */
  readonly sort?: SortCriterion | null;
}

/** `throughput`: fastest decode first. `latency`: earliest first token first. */
export type SortCriterion = 'throughput' | 'latency';

/** Work without the cached tokens. One token of a non-empty prompt always remains, because engines recompute at least one. */
export function withCachedPrefix(work: Work, cachedTokens: number): Work {
  return { ...work, promptTokens: Math.min(work.promptTokens, Math.max(1, work.promptTokens - cachedTokens)) };
}

export interface PrefixCandidate {
  readonly providerId: ProviderId;
  /** Expected cached tokens of the prompt. */
  readonly tokens: number;
}

export interface Choice<S> {
  readonly member: PoolMember<S>;
  readonly estimate: LatencyEstimate;
  /**
   * `near_tie`: drawn among providers of nearly equal cost. `measuring`: too few answers measured. `overdue`: idle for long. `warm`:
   * prompt prefix cached. `probing`: restricted after failures. `alternate`: used if the choices before it cannot take the job.
   */
  readonly why: 'cheapest' | 'near_tie' | 'measuring' | 'overdue' | 'warm' | 'probing' | 'alternate';
}

export type NoPlacementReason =
  /** The request selects providers, none of which serves the model. */
  | 'no_such_serial'
  /** The selected providers serve the model, but accept fewer images than the request has. */
  | 'no_vision'
  /** A provider failed this job, and no other can serve it. */
  | 'all_failed'
  | 'below_trust_floor'
  /** No provider is available, and waiting would not help. */
  | 'none_routable';

export type SchedulingDecision<S> = {
  /** Members whose facts expired; the caller refreshes them. */
  readonly expired: readonly PoolMember<S>[];
} & (
  | {
      readonly kind: 'placed';
      /** Best first; at most `MAX_CHOICES`, preceded by a probe if any. */
      readonly ordered: readonly [Choice<S>, ...Choice<S>[]];
      /** Lowest cost in milliseconds. With a sort criterion or after a last resort, the cost of the first choice. */
      readonly bestMs: number;
    }
  /** Some providers could serve the request, but not now. */
  | { readonly kind: 'busy' }
  /** Waiting would not help. */
  | { readonly kind: 'none'; readonly reason: NoPlacementReason }
);

const MAX_CHOICES = 4;

/** Does not place the job. `now` in milliseconds; `random` returns numbers in [0, 1). */
export function schedule<S>(snapshot: PoolView<S>, request: PlacementRequest, now: number, random: () => number): SchedulingDecision<S> {
  if (selectsProviders(request)) return scheduleSelected(snapshot, request, now, random);
  return scheduleAmong(snapshot, request, now, random, snapshot.mayTryUnproven);
}

function scheduleAmong<S>(
  snapshot: PoolView<S>,
  request: PlacementRequest,
  now: number,
  random: () => number,
  mayTryUnproven: boolean,
): SchedulingDecision<S> {
  const { open } = snapshot;
  const isSorted = (request.sort ?? null) !== null;
  const mayServe = (group: OpenGroup<S>): boolean =>
    isEligible(group, request) && (!group.traits.isCold || mayLoad(group, snapshot, request));
  const maxUnprovenMs = unprovenLimitMs(snapshot, request, mayServe);
  const mayCompete = (group: OpenGroup<S>, costMs: number): boolean =>
    mayServe(group) && (costMs <= maxUnprovenMs || !isUnprovenGroup(group));
  const { cheapest, near, bestMs, nearMs } = rankGroups(snapshot, request, { max: MAX_CHOICES, mayCompete });
  const draw = new MemberDraw<S>(request.exclude, now, random);
  const choices = new Choices<S>(draw, request.work);
  // A provider with a cached prefix wins near ties.
  const cached = cheapestPrefixCandidate(snapshot, request, now);
  if (cached !== null && cached.costMs <= nearMs && draw.take(cached.member)) choices.add(cached, 'warm', cached.work);
  if (choices.isEmpty && !isSorted && (snapshot.hasUnmeasured || snapshot.hasOverdue)) {
    // After a failed attempt, a job goes only to proven providers if there are any.
    const canTryUnproven = maxUnprovenMs === Number.POSITIVE_INFINITY || (mayTryUnproven && request.exclude.size === 0);
    const mayBeTried = (group: OpenGroup<S>): boolean => mayServe(group) && (canTryUnproven || !isUnprovenGroup(group));
    const toMeasure = groupsToMeasure(snapshot, request.work, { bestMs, lottery: random(), mayBeTried });
    if (toMeasure !== null) choices.add(draw.from(toMeasure.groups), toMeasure.why);
  }
  const isOnlyMember = near.length === 1 && near[0]?.members.length === 1;
  if (choices.isEmpty) choices.add(draw.from(near), isOnlyMember ? 'cheapest' : 'near_tie');
  choices.addAlternates(near);
  // Other groups are visited only when all members of the cheapest groups have expired.
  for (const group of cheapest) choices.addAlternates([group]);
  if (choices.isEmpty) choices.add(draw.from(open.filter(mayServe)), 'cheapest');
  if (snapshot.hasUnproven && !choices.isFull) choices.addAlternates(open.filter(mayServe));
  const [first, ...others] = choices.ordered;
  if (first === undefined) return { ...notPlaced(snapshot, request), expired: draw.expired };
  return { kind: 'placed', ordered: [first, ...others], bestMs: isSorted ? first.estimate.costMs : bestMs, expired: draw.expired };
}

/** Choices of one decision, best first. */
class Choices<S> {
  readonly ordered: Choice<S>[] = [];

  constructor(
    private readonly draw: MemberDraw<S>,
    private readonly work: Work,
  ) {}

  get isEmpty(): boolean {
    return this.ordered.length === 0;
  }

  get isFull(): boolean {
    return this.ordered.length >= MAX_CHOICES;
  }

  /** Returns false if there is nothing to add. `expected` is the work that remains with a cached prefix. */
  add(drawn: Drawn<S> | null, why: Choice<S>['why'], expected = this.work): boolean {
    if (drawn === null) return false;
    this.ordered.push({ member: drawn.member, estimate: estimateOf(drawn.group.costModel, expected), why });
    return true;
  }

  /** Adds members of the groups until the maximum. No effect without a first choice. */
  addAlternates(groups: readonly OpenGroup<S>[]): void {
    while (!this.isEmpty && !this.isFull && this.add(this.draw.from(groups), 'alternate'));
  }
}

interface PrefixChoice<S> extends Drawn<S> {
  readonly work: Work;
  readonly costMs: number;
}

/** The cheapest provider with a cached prefix, or null. The last free slot of a busy provider stays free for other requests. */
function cheapestPrefixCandidate<S>(snapshot: PoolView<S>, request: PlacementRequest, now: number): PrefixChoice<S> | null {
  const { affinityWeight } = snapshot.constants;
  const compared = comparedWork(request);
  let best: PrefixChoice<S> | null = null;
  for (const { providerId, tokens } of affinityWeight > 0 ? (request.prefixCandidates ?? []) : []) {
    const member = snapshot.member(providerId);
    if (member === undefined || member.group?.open !== true || member.load.kind !== 'ready') continue;
    const { slots, usedSlots } = member.facts;
    if (usedSlots > 0 && usedSlots >= slots - 1) continue;
    if (ineligibleReason(member.facts, request, now) !== null) continue;
    const work = withCachedPrefix(request.work, affinityWeight * tokens);
    const costMs = costOf(member.group.costModel, withCachedPrefix(compared, affinityWeight * tokens));
    if (best === null || costMs < best.costMs) best = { member, group: member.group, work, costMs };
  }
  return best;
}

/** Whether a request may make a provider load the model. Unlimited for retries, and while no provider has the model or loads it. */
function mayLoad<S>({ traits }: OpenGroup<S>, { slots, loading, ready, constants }: PoolView<S>, request: PlacementRequest): boolean {
  if (request.loadedOnly === true) return false;
  if (slots === 0 || request.exclude.size > 0) return true;
  if (loading >= Math.max(constants.maxLoads, constants.maxLoadsShare * ready)) return false;
  return (request.expectedWaitMs ?? Number.POSITIVE_INFINITY) >= traits.loadMs;
}

/** Schedules in a temporary pool of the selected providers. Their capped speeds and `mayTryUnproven` come from the whole pool. */
function scheduleSelected<S>(snapshot: PoolView<S>, request: PlacementRequest, now: number, random: () => number): SchedulingDecision<S> {
  const selected = selectedMembers(snapshot, request);
  if (selected.length === 0)
    return { kind: 'none', reason: lacksOnlyVision(snapshot, request) ? 'no_vision' : 'no_such_serial', expired: [] };
  const pool = new ProviderPool<S>(snapshot.constants);
  for (const { subject, facts, placementSpeed, contextTokens, load, traits } of selected) {
    pool.put(subject, facts, placementSpeed, contextTokens, now, load, traits);
  }
  const unrestricted = { ...request, providerSerial: null, providerId: null, candidates: null, filter: null };
  return scheduleAmong(pool, unrestricted, now, random, snapshot.mayTryUnproven);
}

/** Whether only the request's images rule out every provider. False if a candidate is not connected: it might accept images. */
function lacksOnlyVision<S>(snapshot: PoolView<S>, request: PlacementRequest): boolean {
  const { filter = null, candidates = null, providerId = null } = request;
  if (filter === null || filter.images === 0) return false;
  const isAbsent = (id: ProviderId) => !filter.ignoredIds.has(id) && snapshot.member(id) === undefined;
  if (providerId === null && candidates !== null && [...candidates].some(isAbsent)) return false;
  const withoutImages = { ...request, filter: { ...filter, images: 0 } };
  return selectedMembers(snapshot, withoutImages).length > 0;
}

function notPlaced<S>(
  snapshot: PoolView<S>,
  { exclude, trustFloor, loadedOnly }: Pick<PlacementRequest, 'exclude' | 'trustFloor' | 'loadedOnly'>,
): { kind: 'busy' } | { kind: 'none'; reason: NoPlacementReason } {
  let isBelowTrustFloor = false;
  for (const group of snapshot.open) {
    // The provider could load the model, but the limit on loads forbids it now.
    if (group.traits.isCold && loadedOnly !== true && isEligible(group, { exclude, trustFloor })) return { kind: 'busy' };
    if (trustFloor === 'hardware' && !group.traits.hasHardwareTrust) isBelowTrustFloor = true;
  }
  for (const { reason, hasHardwareTrust, members } of snapshot.closed) {
    if (!isTransient(reason)) continue;
    if (!meetsTrustFloor(hasHardwareTrust ? 'hardware' : 'self_signed', trustFloor)) isBelowTrustFloor = true;
    else if (!allExcluded(members, exclude)) return { kind: 'busy' };
  }
  for (const providerId of exclude) if (snapshot.member(providerId) !== undefined) return { kind: 'none', reason: 'all_failed' };
  return { kind: 'none', reason: isBelowTrustFloor ? 'below_trust_floor' : 'none_routable' };
}

function isEligible<S>(
  { traits, members }: OpenGroup<S>,
  { trustFloor, exclude, idleOnly }: Pick<PlacementConstraints, 'exclude' | 'trustFloor' | 'idleOnly'>,
): boolean {
  if (idleOnly === true && traits.activeJobs > 0) return false;
  return (trustFloor !== 'hardware' || traits.hasHardwareTrust) && !allExcluded(members, exclude);
}

/** Whether all members failed the job earlier. Runs in O(exclude), not O(members). */
function allExcluded<S>(members: readonly PoolMember<S>[], exclude: ReadonlySet<ProviderId>): boolean {
  return members.length <= exclude.size && members.every(({ facts }) => exclude.has(facts.providerId));
}
