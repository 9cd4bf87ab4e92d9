/**
 * `ProviderGroups` groups a model's providers: available ones by the traits that determine their cost (open groups), others by the reason
 * why they are unavailable (closed groups). Adding and removing a member take constant time.
 */
import { CostTable } from '../cost/cost-table.js';
import { type CostModel, costModelOf, type ThroughputEstimate, type Traits, traitsKey, traitsOf } from '../cost/job-cost.js';
import type { ModelLoad } from '../cost/model-load.js';
import { isTransient, type OfferTraits, type ProviderFacts, type UnavailableReason, unavailableReason } from '../eligibility.js';
import type { SchedulerConstants } from '../scheduler-constants.js';

/** A provider that offers the pool's model. */
export interface PoolMember<S> {
  /** The caller's object for the provider, such as its session. */
  readonly subject: S;
  readonly facts: ProviderFacts;
  /** Measured, or estimated from the claimed hardware. */
  readonly speed: ThroughputEstimate;
  /** `speed`, capped for providers without a verified answer. */
  readonly placementSpeed: ThroughputEstimate;
  /** Context length, in tokens. */
  readonly contextTokens: number;
  readonly traits: OfferTraits;
  readonly load: ModelLoad;
  /** Available without a job for `overdueMs`. */
  readonly isOverdue: boolean;
  readonly group: OpenGroup<S> | ClosedGroup<S> | null;
}

/** Available members with equal traits. */
export interface OpenGroup<S> {
  readonly open: true;
  readonly traits: Traits;
  readonly costModel: CostModel;
  readonly members: readonly PoolMember<S>[];
}

export interface ClosedGroup<S> {
  readonly open: false;
  readonly reason: UnavailableReason;
  readonly hasHardwareTrust: boolean;
  readonly members: readonly PoolMember<S>[];
}

/** A member with its position in a group. Only {@link ProviderGroups} changes `group` and `position`. */
export interface GroupedMember<S> extends PoolMember<S> {
  /** {@link throughputKey} of `placementSpeed`. */
  readonly speedKey: number;
  group: Group<S> | null;
  /** Index in the group's members. */
  position: number;
}

interface Open<S> extends OpenGroup<S> {
  readonly key: number;
  readonly members: GroupedMember<S>[];
  /** Index in the list of open groups. */
  position: number;
}

interface Closed<S> extends ClosedGroup<S> {
  readonly key: number;
  readonly members: GroupedMember<S>[];
}

type Group<S> = Open<S> | Closed<S>;

export class ProviderGroups<S> {
  readonly #constants: SchedulerConstants;
  readonly #open: Open<S>[] = [];
  readonly #openByKey = new Map<number, Open<S>>();
  readonly #closed = new Map<number, Closed<S>>();
  /** Row `i` has the costs of `open[i]`. */
  readonly costs = new CostTable();
  #unmeasured = 0;
  #unproven = 0;
  #overdue = 0;

  constructor(constants: SchedulerConstants) {
    this.#constants = constants;
  }

  get open(): readonly OpenGroup<S>[] {
    return this.#open;
  }

  get closed(): Iterable<ClosedGroup<S>> {
    return this.#closed.values();
  }

  get hasUnmeasured(): boolean {
    return this.#unmeasured > 0;
  }

  get hasUnproven(): boolean {
    return this.#unproven > 0;
  }

  get hasOverdue(): boolean {
    return this.#overdue > 0;
  }

  /** Moves a member into the group that matches its current facts, and returns the group. */
  place(member: GroupedMember<S>, now: number): OpenGroup<S> | ClosedGroup<S> {
    const reason = unavailableReason(member.facts, now);
    const group = reason === null ? this.#openGroup(member, now) : this.#closedGroup(reason, member.facts.trustLevel === 'hardware');
    if (group !== member.group) {
      this.leave(member);
      member.position = group.members.push(member) - 1;
      member.group = group;
    }
    return group;
  }

  leave(member: GroupedMember<S>): void {
    const { group } = member;
    if (group === null) return;
    const last = group.members.pop();
    if (last !== undefined && last !== member) {
      group.members[member.position] = last;
      last.position = member.position;
    }
    if (group.members.length === 0) this.#remove(group);
    member.group = null;
  }

  #openGroup(member: GroupedMember<S>, now: number): Open<S> {
    const { facts, placementSpeed, speedKey } = member;
    const key = traitsKey(facts, speedKey, member, now);
    const known = this.#openByKey.get(key);
    if (known !== undefined) return known;
    const traits = traitsOf(facts, placementSpeed, member, now);
    const costModel = costModelOf(traits, this.#constants);
    const group: Open<S> = { key, open: true, traits, costModel, members: [], position: this.#open.length };
    this.costs.set(group.position, costModel);
    this.#open.push(group);
    this.#openByKey.set(key, group);
    this.#count(group, 1);
    return group;
  }

  #closedGroup(reason: UnavailableReason, hasHardwareTrust: boolean): Closed<S> {
    const key = UNAVAILABLE_REASONS.indexOf(reason) * 2 + (hasHardwareTrust ? 1 : 0);
    let group = this.#closed.get(key);
    if (group === undefined) {
      group = { key, open: false, reason, hasHardwareTrust, members: [] };
      this.#closed.set(key, group);
    }
    return group;
  }

  #remove(group: Group<S>): void {
    if (!group.open) {
      this.#closed.delete(group.key);
      return;
    }
    this.#openByKey.delete(group.key);
    this.#count(group, -1);
    const last = this.#open.pop();
    if (last === undefined || last === group) return;
    this.#open[group.position] = last;
    last.position = group.position;
    this.costs.set(last.position, last.costModel);
  }

  #count(group: OpenGroup<S>, by: 1 | -1): void {
    if (isUnmeasuredGroup(group)) this.#unmeasured += by;
    if (isUnprovenGroup(group)) this.#unproven += by;
    if (isOverdueGroup(group)) this.#overdue += by;
  }
}

/** The index of a reason is part of a closed group's key. */
const UNAVAILABLE_REASONS: readonly UnavailableReason[] = [
  'quarantined',
  'draining',
  'away',
  'key_expired',
  'untrusted',
  'below_min_trust_level',
  'low_battery',
  'too_hot',
  'no_memory',
  'held_off',
  'cooling_down',
  'on_probation',
  'no_free_slot',
];

/** Whether the group's providers should get jobs that measure their rates. */
export function isUnmeasuredGroup<S>({ traits }: OpenGroup<S>): boolean {
  return !traits.isMeasured && traits.failures === 0 && !traits.isCold;
}

/** Whether the group's providers have neither a verified answer nor a certificate chain. After one answer they are not unproven. */
export function isUnprovenGroup<S>({ traits }: OpenGroup<S>): boolean {
  return traits.isUntried && !traits.hasHardwareTrust;
}

/** Whether the group's providers were available but got no job for `overdueMs`. */
export function isOverdueGroup<S>({ traits }: OpenGroup<S>): boolean {
  return traits.isOverdue && traits.failures === 0 && !traits.isCold;
}

/** Whether the group's members take jobs now, or after a transient reason passes. */
export function isServing<S>(group: OpenGroup<S> | ClosedGroup<S>): boolean {
  return group.open || isTransient(group.reason);
}
