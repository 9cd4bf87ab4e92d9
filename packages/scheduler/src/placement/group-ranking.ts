/**
 * `rankGroups` orders groups of providers by the estimated cost of a request. `groupsToMeasure` chooses groups to try instead, to learn
 * their speed.
 *
 * Costs are in milliseconds. All members of a group cost the same. Only groups of available (open) providers are ranked.
 */
import { costOf, type Work } from '../cost/job-cost.js';
import { isOverdueGroup, isUnmeasuredGroup, isUnprovenGroup, type OpenGroup } from '../pool/provider-groups.js';
import type { PoolView } from '../pool/provider-pool.js';
import type { SchedulerConstants } from '../scheduler-constants.js';
import type { PlacementRequest } from './schedule.js';

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

/** Maximum cost that is treated as equal to the best cost, in milliseconds. */
export function nearTieMs(bestMs: number, { nearTieFactor, nearTieMs: more }: SchedulerConstants): number {
  return bestMs * nearTieFactor + more;
}

interface RankedGroups<S> {
  /** At most `max`, cheapest first. */
  readonly cheapest: readonly OpenGroup<S>[];
  /** All groups of cost up to `nearMs`. */
  readonly near: readonly OpenGroup<S>[];
  /** Lowest cost; Infinity if no group may compete. */
  readonly bestMs: number;
  /** Maximum cost that is treated as equal to `bestMs`. */
  readonly nearMs: number;
}

interface RankingOptions<S> {
  /** Maximum number of cheapest groups. */
  readonly max: number;
  /** Whether the request may go to the group at this cost, in milliseconds. */
  readonly mayCompete: (group: OpenGroup<S>, costMs: number) => boolean;
}

export function rankGroups<S>(
  { open, costs, constants }: PoolView<S>,
  request: PlacementRequest,
  { max, mayCompete }: RankingOptions<S>,
): RankedGroups<S> {
  const compared = comparedWork(request);
  const cheapest = new CheapestGroups<S>(max);
  costs.forEachUpTo(
    open.length,
    compared,
    () => cheapest.limitMs,
    (row, costMs) => {
      const group = open[row] as OpenGroup<S>;
      if (mayCompete(group, costMs)) cheapest.add(group, costMs);
    },
  );
  const { bestMs } = cheapest;
  // Requests with a sort criterion get the best provider, without load balancing.
  const nearMs = (request.sort ?? null) === null ? nearTieMs(bestMs, constants) : bestMs;
  const near: OpenGroup<S>[] = [];
  costs.forEachUpTo(
    open.length,
    compared,
    () => nearMs,
    (row, costMs) => {
      const group = open[row] as OpenGroup<S>;
      if (mayCompete(group, costMs)) near.push(group);
    },
  );
  return { cheapest: cheapest.groups, near, bestMs, nearMs };
}

interface Lottery<S> {
  readonly bestMs: number;
  /** Random number in [0, 1). */
  readonly lottery: number;
  readonly mayBeTried: (group: OpenGroup<S>) => boolean;
}

/** Groups of which this request measures a member, chosen for a share of the requests by `lottery`; null for the others. May be empty. */
export function groupsToMeasure<S>(
  { open, constants, hasUnmeasured, hasOverdue }: PoolView<S>,
  work: Work,
  { bestMs, lottery, mayBeTried }: Lottery<S>,
): { readonly groups: readonly OpenGroup<S>[]; readonly why: 'measuring' | 'overdue' } | null {
  if (lottery < constants.measuringShare) {
    if (!hasUnmeasured) return null;
    return { groups: fewestJobs(open.filter((group) => isUnmeasuredGroup(group) && mayBeTried(group))), why: 'measuring' };
  }
  if (lottery >= constants.measuringShare + constants.overdueShare || !hasOverdue) return null;
  const maxMs = bestMs * constants.overdueMaxFactor + constants.overdueMaxMs;
  const isOverdue = (group: OpenGroup<S>): boolean => isOverdueGroup(group) && mayBeTried(group) && costOf(group.costModel, work) <= maxMs;
  return { groups: open.filter(isOverdue), why: 'overdue' };
}

/** Maximum cost at which an unproven provider competes: a fraction of the others' lowest cost; Infinity if no other can serve. */
export function unprovenLimitMs<S>(
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

/** Groups with the fewest running jobs, because concurrent jobs distort the measured rates. */
function fewestJobs<S>(groups: readonly OpenGroup<S>[]): readonly OpenGroup<S>[] {
  const fewest = Math.min(...groups.map(({ traits }) => traits.activeJobs));
  return groups.filter(({ traits }) => traits.activeJobs === fewest);
}

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

  /** `add` ignores groups of this cost or more, in milliseconds. */
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
