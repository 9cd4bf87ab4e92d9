/**
 * Chooses providers for a request: a pure function of pool, request, clock and random numbers. Cheapest first, near ties in random
 * order; a small share of the requests goes to unmeasured providers.
 */
import type { ProviderId } from '@inference/protocol';
import {
  type IneligibleReason,
  ineligibleReason,
  isTransient,
  meetsTrustFloor,
  type PlacementConstraints,
  type ProviderSelection,
  passesFilter,
  resolveClaimants,
  selectsProviders,
  unavailableReason,
} from './eligibility.js';
import { costOf, estimateOf, type LatencyEstimate, type Work } from './job-cost.js';
import { isOverdueGroup, isUnmeasuredGroup, isUnprovenGroup, type OpenGroup, type PoolMember } from './provider-groups.js';
import { type PoolView, ProviderPool } from './provider-pool.js';
import type { SchedulerConstants } from './scheduler-constants.js';

export interface PlacementRequest extends PlacementConstraints {
  readonly work: Work;
  /** Providers that probably have a cached prefix of the prompt. */
  readonly prefixCandidates?: readonly PrefixCandidate[];
  /** Expected wait for a provider that has the model, in milliseconds; null: unknown. */
  readonly expectedWaitMs?: number | null;
  /** Only providers that have the model in memory or load it already. */
  readonly loadedOnly?: boolean;
  /** Criterion of the client. Left out or null: estimated completion, with near ties in random order. */
  readonly sort?: SortCriterion | null;
}

/** `throughput`: fastest decode first. `latency`: earliest first token first. */
export type SortCriterion = 'throughput' | 'latency';

/** Work that a cached prefix leaves; at least one prompt token, if there are any. */
export function withCachedPrefix(work: Work, cachedTokens: number): Work {
  return { ...work, promptTokens: Math.min(work.promptTokens, Math.max(1, work.promptTokens - cachedTokens)) };
}

/** Completion tokens that outweigh any waiting time. */
const LONG_COMPLETION_TOKENS = 1_000_000;

/** Work by which providers are compared: an endless completion without a prompt shows throughput, a prompt alone shows latency. */
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
   * `measuring`: its speed is unknown. `overdue`: idle for long. `warm`: it has a cached prefix.
   *
   * `probing`: this job ends its probation or not. `alternate`: not the first choice.
   */
  readonly why: 'cheapest' | 'near_tie' | 'measuring' | 'overdue' | 'warm' | 'probing' | 'alternate';
}

export type NoPlacementReason = 'no_such_serial' | 'all_failed' | 'below_trust_floor' | 'none_routable';

export type SchedulingDecision<S> = {
  /** Members whose facts are older than the clock; refresh them. */
  readonly expired: readonly PoolMember<S>[];
} & (
  | {
      readonly kind: 'placed';
      /** Best first; at most a few. */
      readonly ordered: readonly [Choice<S>, ...Choice<S>[]];
      /** Cost of the cheapest group, in milliseconds; other providers are compared with it. */
      readonly bestMs: number;
    }
  /** Some providers could serve the request, but not now. */
  | { readonly kind: 'busy' }
  /** Waiting would not help. */
  | { readonly kind: 'none'; readonly reason: NoPlacementReason }
);

/** Maximum choices per decision. */
const MAX_CHOICES = 4;
/** Draws at random before visiting members in order. */
const MAX_RANDOM_DRAWS = 8;

/** Maximum cost that counts as equal to the best, in milliseconds. */
export function nearTieMs(bestMs: number, { nearTieFactor, nearTieMs: more }: SchedulerConstants): number {
  return bestMs * nearTieFactor + more;
}

/** `now` in milliseconds; `random` gives numbers in [0, 1). */
export function schedule<S>(snapshot: PoolView<S>, request: PlacementRequest, now: number, random: () => number): SchedulingDecision<S> {
  if (selectsProviders(request)) return scheduleSelected(snapshot, request, now, random);
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
  // A sorted request gets the best provider, without load balancing.
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
  // A cached prefix wins near ties: the saved time serves other jobs.
  const cached = cheapestPrefixCandidate(snapshot, request, now);
  if (cached !== null && cached.costMs <= nearMs && draw.take(cached.member)) add(cached, 'warm', cached.work);
  const lot = choices.length === 0 && !isSorted && (snapshot.hasUnmeasured || snapshot.hasOverdue) ? random() : 1;
  // A job that failed once goes to proven providers only.
  const canTryUnproven = maxUnprovenMs === Number.POSITIVE_INFINITY || (snapshot.mayTryUnproven && request.exclude.size === 0);
  const hasTurn = (group: OpenGroup<S>): boolean => mayServe(group) && (canTryUnproven || !isUnprovenGroup(group));
  if (lot < constants.measuringShare) {
    if (snapshot.hasUnmeasured) add(draw.from(fewestJobs(open.filter((group) => isUnmeasuredGroup(group) && hasTurn(group)))), 'measuring');
  } else if (lot < constants.measuringShare + constants.overdueShare && snapshot.hasOverdue) {
    const maxMs = bestMs * constants.overdueMaxFactor + constants.overdueMaxMs;
    add(draw.from(open.filter((group) => isOverdueGroup(group) && hasTurn(group) && costOf(group.costModel, work) <= maxMs)), 'overdue');
  }
  const alone = near.length === 1 && near[0]?.members.length === 1;
  if (choices.length === 0) add(draw.from(near), alone ? 'cheapest' : 'near_tie');
  while (choices.length > 0 && choices.length < MAX_CHOICES && add(draw.from(near), 'alternate'));
  // Each of the cheapest groups offers a member, so others are visited only when all of these have expired.
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

/** Maximum cost of an unproven provider: a fraction of the cheapest proven one, or no limit without an available proven one. */
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

/**
 * The cheapest provider with a cached prefix, or null. A provider's last free slot is never given for this reason alone, so a
 * long conversation leaves room for other accounts.
 */
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

/**
 * Whether a request may start a load in a group. Waiting is better where its expected time is shorter. Without an estimate, a few
 * loads at once suffice: a burst ends before all loads finish.
 */
function mayLoad<S>({ traits }: OpenGroup<S>, { slots, loading, ready, constants }: PoolView<S>, request: PlacementRequest): boolean {
  if (request.loadedOnly === true) return false;
  if (slots === 0 || request.exclude.size > 0) return true;
  if (loading >= Math.max(constants.maxLoads, constants.maxLoadsShare * ready)) return false;
  return (request.expectedWaitMs ?? Number.POSITIVE_INFINITY) >= traits.loadMs;
}

/** Why each provider of the snapshot may not serve the request now. Eligible providers are left out. */
export function ineligibleReasons<S>(
  members: Iterable<PoolMember<S>>,
  demands: PlacementConstraints,
  now: number,
): Map<ProviderId, IneligibleReason> {
  const reasons = new Map<ProviderId, IneligibleReason>();
  const all = [...members];
  const bearers = new Set(resolveClaimants(all.filter(({ facts }) => facts.serialNumber === demands.providerSerial)));
  for (const member of all) {
    const isOther = demands.providerSerial !== null && (demands.providerId ?? null) === null && !bearers.has(member);
    const reason = isOther ? 'other_serial' : ineligibleReason(member.facts, demands, now);
    if (reason !== null) reasons.set(member.facts.providerId, reason);
  }
  return reasons;
}

/** Members that the request names by provider id or serial number, as candidates, or by its filter. */
export function selectedMembers<S>(
  snapshot: Pick<PoolView<S>, 'member' | 'members' | 'membersBySerial'>,
  selection: ProviderSelection,
): readonly PoolMember<S>[] {
  const { filter = null } = selection;
  const named = namedMembers(snapshot, selection);
  if (filter === null) return named ?? [];
  return [...(named ?? snapshot.members())].filter(({ facts, quantization }) => passesFilter(filter, facts, quantization));
}

/** Null: the request names none. */
function namedMembers<S>(
  snapshot: Pick<PoolView<S>, 'member' | 'membersBySerial'>,
  { providerSerial, providerId = null, candidates = null }: ProviderSelection,
): readonly PoolMember<S>[] | null {
  if (providerId === null && candidates === null) return providerSerial === null ? null : snapshot.membersBySerial(providerSerial);
  const ids = providerId === null ? (candidates ?? []) : [providerId];
  return [...ids].flatMap((id) => {
    const member = candidates?.has(id) === false ? undefined : snapshot.member(id);
    return member === undefined || (providerSerial ?? member.facts.serialNumber) !== member.facts.serialNumber ? [] : [member];
  });
}

/** The selected providers form a pool of their own. */
function scheduleSelected<S>(snapshot: PoolView<S>, request: PlacementRequest, now: number, random: () => number): SchedulingDecision<S> {
  const selected = selectedMembers(snapshot, request);
  if (selected.length === 0) return { kind: 'none', reason: 'no_such_serial', expired: [] };
  const pool = new ProviderPool<S>(snapshot.constants);
  for (const { subject, facts, speed, contextTokens, load, quantization } of selected) {
    pool.put(subject, facts, speed, contextTokens, now, load, quantization);
  }
  return schedule(pool, { ...request, providerSerial: null, providerId: null, candidates: null, filter: null }, now, random);
}

function notPlaced<S>(
  snapshot: PoolView<S>,
  { exclude, trustFloor, loadedOnly }: Pick<PlacementRequest, 'exclude' | 'trustFloor' | 'loadedOnly'>,
): { kind: 'busy' } | { kind: 'none'; reason: NoPlacementReason } {
  let tooLittleTrust = false;
  for (const group of snapshot.open) {
    // An unloaded provider that may not load counts as busy.
    if (group.traits.isCold && loadedOnly !== true && isEligible(group, { exclude, trustFloor })) return { kind: 'busy' };
    if (trustFloor === 'hardware' && !group.traits.hasHardwareTrust) tooLittleTrust = true;
  }
  for (const { reason: gate, hasHardwareTrust, members } of snapshot.closed) {
    if (!isTransient(gate)) continue;
    if (!meetsTrustFloor(hasHardwareTrust ? 'hardware' : 'self_signed', trustFloor)) tooLittleTrust = true;
    else if (!allExcluded(members, exclude)) return { kind: 'busy' };
  }
  for (const providerId of exclude) if (snapshot.member(providerId) !== undefined) return { kind: 'none', reason: 'all_failed' };
  return { kind: 'none', reason: tooLittleTrust ? 'below_trust_floor' : 'none_routable' };
}

/** The groups with the fewest jobs: a rate is measured best without concurrent jobs. */
function fewestJobs<S>(groups: readonly OpenGroup<S>[]): readonly OpenGroup<S>[] {
  const fewest = Math.min(...groups.map(({ traits }) => traits.activeJobs));
  return groups.filter(({ traits }) => traits.activeJobs === fewest);
}

/** Whether any of the group may have the request. */
function isEligible<S>(
  { traits, members }: OpenGroup<S>,
  { trustFloor, exclude, idleOnly }: Pick<PlacementConstraints, 'exclude' | 'trustFloor' | 'idleOnly'>,
): boolean {
  if (idleOnly === true && traits.activeJobs > 0) return false;
  return (trustFloor !== 'hardware' || traits.hasHardwareTrust) && !allExcluded(members, exclude);
}

/** Whether all of the members have failed the job. Looks at a few only. */
function allExcluded<S>(members: readonly PoolMember<S>[], exclude: ReadonlySet<ProviderId>): boolean {
  return members.length <= exclude.size && members.every(({ facts }) => exclude.has(facts.providerId));
}

/** The few cheapest groups, cheapest first. */
class CheapestGroups<S> {
  readonly groups: OpenGroup<S>[] = [];
  readonly #costs: number[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get bestMs(): number {
    return this.#costs[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Groups of equal or higher cost are not added. */
  get limitMs(): number {
    return this.#costs[this.#max - 1] ?? Number.POSITIVE_INFINITY;
  }

  add(group: OpenGroup<S>, costMs: number): void {
    if (costMs >= this.limitMs) return;
    let place = this.#costs.length;
    while (place > 0 && (this.#costs[place - 1] as number) > costMs) place--;
    this.#costs.splice(place, 0, costMs);
    this.groups.splice(place, 0, group);
    if (this.groups.length > this.#max) {
      this.#costs.pop();
      this.groups.pop();
    }
  }
}

interface Drawn<S> {
  readonly member: PoolMember<S>;
  readonly group: OpenGroup<S>;
}

/** Draws members of groups without replacement, with equal probability. */
class MemberDraw<S> {
  readonly expired: PoolMember<S>[] = [];
  readonly #taken = new Set<PoolMember<S>>();

  constructor(
    private readonly exclude: ReadonlySet<ProviderId>,
    private readonly now: number,
    private readonly random: () => number,
  ) {}

  from(groups: readonly OpenGroup<S>[]): Drawn<S> | null {
    let total = 0;
    for (const { members } of groups) total += members.length;
    if (total === 0) return null;
    for (let draws = 0; draws < MAX_RANDOM_DRAWS; draws++) {
      const drawn = this.#at(groups, Math.floor(this.random() * total));
      if (drawn !== null && this.#take(drawn.member)) return drawn;
    }
    const start = Math.floor(this.random() * total);
    for (let offset = 0; offset < total; offset++) {
      const drawn = this.#at(groups, (start + offset) % total);
      if (drawn !== null && this.#take(drawn.member)) return drawn;
    }
    return null;
  }

  /** Whether the member may be drawn. */
  take(member: PoolMember<S>): boolean {
    return this.#take(member);
  }

  #at(groups: readonly OpenGroup<S>[], index: number): Drawn<S> | null {
    let left = index;
    for (const group of groups) {
      const member = group.members[left];
      if (member !== undefined) return { member, group };
      left -= group.members.length;
    }
    return null;
  }

  #take(member: PoolMember<S>): boolean {
    if (this.#taken.has(member) || this.exclude.has(member.facts.providerId)) return false;
    this.#taken.add(member);
    if (unavailableReason(member.facts, this.now) === null) return true;
    this.expired.push(member);
    return false;
  }
}
