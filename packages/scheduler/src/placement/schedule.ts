/**
 * `schedule` chooses providers for a request: the cheapest by estimated cost, at random among near ties.
 *
 * A share of requests goes to unmeasured or long-idle providers instead, to measure their throughput.
 */
import type { ProviderId } from '@inference/protocol';
import { costOf, estimateOf, type LatencyEstimate, type Work } from '../cost/job-cost.js';
import { ineligibleReason, isTransient, meetsTrustFloor, type PlacementConstraints, selectsProviders } from '../eligibility.js';
import { isOverdueGroup, isUnmeasuredGroup, isUnprovenGroup, type OpenGroup, type PoolMember } from '../pool/provider-groups.js';
import { type PoolView, ProviderPool } from '../pool/provider-pool.js';
import type { SchedulerConstants } from '../scheduler-constants.js';
import { CheapestGroups } from './cheapest-groups.js';
import { type Drawn, MemberDraw } from './member-draw.js';
import { selectedMembers } from './provider-selection.js';

export interface PlacementRequest extends PlacementConstraints {
  readonly work: Work;
  /** Providers that probably have a cached prefix of the prompt. */
  readonly prefixCandidates?: readonly PrefixCandidate[];
  /** Estimated queue wait for a provider with the model in memory, in milliseconds; null: unknown. */
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

/** Large enough to make any waiting time negligible. */
const LONG_COMPLETION_TOKENS = 1_000_000;

/** Work for which costs are compared: a very long completion for `throughput`, only the prompt for `latency`. */
export function comparedWork({ work, sort = null }: Pick<PlacementRequest, 'work' | 'sort'>): Work {
  switch (sort) {
    case null:
      return work;
    case 'throughput':
      return { promptTokens: 0, completionTokens: LONG_COMPLETION_TOKENS };
    case 'latency':
      return { promptTokens: work.promptTokens, completionTokens: 0 };
    default:
      return sort satisfies never;
  }
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
   * `near_tie`: drawn among providers of nearly equal cost. `measuring`: not measured yet. `overdue`: idle for long. `warm`: prompt
   * prefix cached. `probing`: restricted after failures. `alternate`: for retries after the first choice.
   */
  readonly why: 'cheapest' | 'near_tie' | 'measuring' | 'overdue' | 'warm' | 'probing' | 'alternate';
}

export type NoPlacementReason =
  | 'no_such_serial'
  /** The selected providers serve the model, but accept fewer images than the request has. */
  | 'no_vision'
  | 'all_failed'
  | 'below_trust_floor'
  | 'none_routable';

export type SchedulingDecision<S> = {
  /** Members whose facts expired; the caller refreshes them. */
  readonly expired: readonly PoolMember<S>[];
} & (
  | {
      readonly kind: 'placed';
      /** Best first; at most `MAX_CHOICES`, preceded by a probe if any. */
      readonly ordered: readonly [Choice<S>, ...Choice<S>[]];
      /** Cost of the cheapest group in milliseconds; of the first choice, if the request has a sort criterion. */
      readonly bestMs: number;
    }
  /** Some providers could serve the request, but not now. */
  | { readonly kind: 'busy' }
  /** Waiting would not help. */
  | { readonly kind: 'none'; readonly reason: NoPlacementReason }
);

/** Maximum choices per decision. */
const MAX_CHOICES = 4;

/** Maximum cost that is treated as equal to the best cost, in milliseconds. */
export function nearTieMs(bestMs: number, { nearTieFactor, nearTieMs: more }: SchedulerConstants): number {
  return bestMs * nearTieFactor + more;
}

/** `now` in milliseconds; `random` returns numbers in [0, 1). */
export function schedule<S>(snapshot: PoolView<S>, request: PlacementRequest, now: number, random: () => number): SchedulingDecision<S> {
  if (selectsProviders(request)) return scheduleSelected(snapshot, request, now, random);
  return scheduleAmong(snapshot, request, now, random, snapshot.mayTryUnproven);
}

/** Schedules a request that selects no providers. */
function scheduleAmong<S>(
  snapshot: PoolView<S>,
  request: PlacementRequest,
  now: number,
  random: () => number,
  mayTryUnproven: boolean,
): SchedulingDecision<S> {
  const { work } = request;
  const compared = comparedWork(request);
  const isSorted = (request.sort ?? null) !== null;
  const { open, costs, constants } = snapshot;
  const mayServe = (group: OpenGroup<S>): boolean =>
    isEligible(group, request) && (!group.traits.isCold || mayLoad(group, snapshot, request));
  const maxUnprovenMs = unprovenLimitMs(snapshot, request, mayServe);
  const competes = (group: OpenGroup<S>, costMs: number): boolean =>
    mayServe(group) && (costMs <= maxUnprovenMs || !isUnprovenGroup(group));
  const cheapest = new CheapestGroups<S>(MAX_CHOICES);
  costs.forEachUpTo(
    open.length,
    compared,
    () => cheapest.limitMs,
    (row, costMs) => {
      const group = open[row] as OpenGroup<S>;
      if (competes(group, costMs)) cheapest.add(group, costMs);
    },
  );
  const { bestMs } = cheapest;
  // Requests with a sort criterion get the best provider, without load balancing.
  const nearMs = isSorted ? bestMs : nearTieMs(bestMs, constants);
  const near: OpenGroup<S>[] = [];
  costs.forEachUpTo(
    open.length,
    compared,
    () => nearMs,
    (row, costMs) => {
      const group = open[row] as OpenGroup<S>;
      if (competes(group, costMs)) near.push(group);
    },
  );
  const draw = new MemberDraw<S>(request.exclude, now, random);
  const choices: Choice<S>[] = [];
  const add = (drawn: Drawn<S> | null, why: Choice<S>['why'], expected = work): boolean => {
    if (drawn === null) return false;
    choices.push({ member: drawn.member, estimate: estimateOf(drawn.group.costModel, expected), why });
    return true;
  };
  // A provider with a cached prefix wins near ties.
  const cached = cheapestPrefixCandidate(snapshot, request, now);
  if (cached !== null && cached.costMs <= nearMs && draw.take(cached.member)) add(cached, 'warm', cached.work);
  const lottery = choices.length === 0 && !isSorted && (snapshot.hasUnmeasured || snapshot.hasOverdue) ? random() : 1;
  // After a failed attempt, a job goes only to proven providers if there are any.
  const canTryUnproven = maxUnprovenMs === Number.POSITIVE_INFINITY || (mayTryUnproven && request.exclude.size === 0);
  const mayBeTried = (group: OpenGroup<S>): boolean => mayServe(group) && (canTryUnproven || !isUnprovenGroup(group));
  if (lottery < constants.measuringShare) {
    if (snapshot.hasUnmeasured)
      add(draw.from(fewestJobs(open.filter((group) => isUnmeasuredGroup(group) && mayBeTried(group)))), 'measuring');
  } else if (lottery < constants.measuringShare + constants.overdueShare && snapshot.hasOverdue) {
    const maxMs = bestMs * constants.overdueMaxFactor + constants.overdueMaxMs;
    add(draw.from(open.filter((group) => isOverdueGroup(group) && mayBeTried(group) && costOf(group.costModel, work) <= maxMs)), 'overdue');
  }
  const isOnlyMember = near.length === 1 && near[0]?.members.length === 1;
  if (choices.length === 0) add(draw.from(near), isOnlyMember ? 'cheapest' : 'near_tie');
  while (choices.length > 0 && choices.length < MAX_CHOICES && add(draw.from(near), 'alternate'));
  // Other groups are visited only when all members of the cheapest groups have expired.
  for (const group of cheapest.groups) {
    while (choices.length > 0 && choices.length < MAX_CHOICES && add(draw.from([group]), 'alternate'));
  }
  if (choices.length === 0) add(draw.from(open.filter((group) => mayServe(group))), 'cheapest');
  if (snapshot.hasUnproven) {
    while (choices.length > 0 && choices.length < MAX_CHOICES && add(draw.from(open.filter((group) => mayServe(group))), 'alternate'));
  }
  const [first, ...others] = choices;
  if (first !== undefined) {
    return { kind: 'placed', ordered: [first, ...others], bestMs: isSorted ? first.estimate.costMs : bestMs, expired: draw.expired };
  }
  return { ...notPlaced(snapshot, request), expired: draw.expired };
}

/** Maximum cost of an unproven provider: a fraction of the cheapest proven cost; Infinity if no proven provider can serve. */
function unprovenLimitMs<S>(
  { open, costs, constants, hasUnproven }: PoolView<S>,
  request: PlacementRequest,
  mayServe: (group: OpenGroup<S>) => boolean,
): number {
  let bestMs = Number.POSITIVE_INFINITY;
  if (!hasUnproven) return bestMs;
  costs.forEachUpTo(
    open.length,
    comparedWork(request),
    () => bestMs,
    (row, costMs) => {
      const group = open[row] as OpenGroup<S>;
      if (!isUnprovenGroup(group) && mayServe(group)) bestMs = costMs;
    },
  );
  return bestMs / constants.unprovenFactor;
}

interface PrefixChoice<S> extends Drawn<S> {
  readonly work: Work;
  readonly costMs: number;
}

/** The cheapest provider with a cached prefix, or null. The last free slot of a busy provider stays free for other accounts. */
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

/** Whether a request may make a provider load the model. If other providers have it, only retries load without limit. */
function mayLoad<S>({ traits }: OpenGroup<S>, { slots, loading, ready, constants }: PoolView<S>, request: PlacementRequest): boolean {
  if (request.loadedOnly === true) return false;
  if (slots === 0 || request.exclude.size > 0) return true;
  if (loading >= Math.max(constants.maxLoads, constants.maxLoadsShare * ready)) return false;
  return (request.expectedWaitMs ?? Number.POSITIVE_INFINITY) >= traits.loadMs;
}

/** Schedules in a temporary pool of the selected providers, with the speed cap and the job counts of the whole pool. */
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

/** Groups with the fewest running jobs, because concurrent jobs distort the measured rates. */
function fewestJobs<S>(groups: readonly OpenGroup<S>[]): readonly OpenGroup<S>[] {
  const fewest = Math.min(...groups.map(({ traits }) => traits.activeJobs));
  return groups.filter(({ traits }) => traits.activeJobs === fewest);
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
