/**
 * The providers of one model in groups: available members by traits, others by their reason. A change moves one member between two
 * groups, so placement visits groups and never every member.
 */
import type { ProviderId } from '@inference/protocol';
import { CostTable } from './cost-table.js';
import { isTransient, type ProviderFacts, resolveClaimants, type UnavailableReason, unavailableReason } from './eligibility.js';
import { type IdleNode, IdleQueue } from './idle-queue.js';
import {
  type CostModel,
  costModelOf,
  isUntried,
  type ThroughputEstimate,
  type Traits,
  throughputKey,
  traitsKey,
  traitsOf,
} from './job-cost.js';
import { type ModelLoad, READY_LOAD } from './model-load.js';
import { DEFAULT_CONSTANTS, type SchedulerConstants } from './scheduler-constants.js';
import { type CountedThroughput, ThroughputHistogram } from './throughput-histogram.js';

/** A provider that serves the model. */
export interface PoolMember<S> {
  readonly subject: S;
  readonly facts: ProviderFacts;
  /** Measured, or estimated from the claimed hardware. */
  readonly speed: ThroughputEstimate;
  /** Most tokens of prompt and answer. */
  readonly contextTokens: number;
  readonly load: ModelLoad;
  readonly isOverdue: boolean;
  /** Current group. */
  readonly group: OpenGroup<S> | ClosedGroup<S> | null;
}

/** Available members with equal traits. */
export interface OpenGroup<S> {
  readonly open: true;
  readonly traits: Traits;
  readonly costModel: CostModel;
  readonly members: readonly PoolMember<S>[];
}

interface ClosedGroup<S> {
  readonly open: false;
  readonly reason: UnavailableReason;
  readonly hasHardwareTrust: boolean;
  readonly members: readonly PoolMember<S>[];
}

/** Input of a placement. */
export interface PoolView<S> {
  readonly open: readonly OpenGroup<S>[];
  /** Costs of `open`, row by row. */
  readonly costs: CostTable;
  readonly constants: SchedulerConstants;
  /** Whether any open group waits to be measured. */
  readonly hasUnmeasured: boolean;
  /** Whether any open group is unproven; see {@link isUnprovenGroup}. */
  readonly hasUnproven: boolean;
  /** Whether unproven providers had less than their share of the model's latest jobs. */
  readonly mayTryUnproven: boolean;
  /** Whether any open group had no work for long. */
  readonly hasOverdue: boolean;
  /** Slots of available members that have the model in memory or load it. */
  readonly slots: number;
  /** Available members that load the model, and members that have it. */
  readonly loading: number;
  readonly ready: number;
  readonly closed: Iterable<ClosedGroup<S>>;
  member(providerId: ProviderId): PoolMember<S> | undefined;
  membersBySerial(serialNumber: string): readonly PoolMember<S>[];
}

interface Open<S> extends OpenGroup<S> {
  readonly key: number;
  readonly members: Entry<S>[];
  /** Place in the list of groups. */
  position: number;
}

interface Closed<S> extends ClosedGroup<S> {
  readonly key: number;
  readonly members: Entry<S>[];
}

type Group<S> = Open<S> | Closed<S>;

interface Entry<S> extends IdleNode {
  readonly subject: S;
  facts: ProviderFacts;
  speed: ThroughputEstimate;
  /** Key of the rates used for placement. */
  rates: number;
  /** Null: no answer verified yet. */
  countedSpeed: CountedThroughput | null;
  contextTokens: number;
  load: ModelLoad;
  isOverdue: boolean;
  /** Counted among the available members. */
  isCounted: boolean;
  group: Group<S> | null;
  /** Place in the group's list. */
  position: number;
}

export class ProviderPool<S> implements PoolView<S> {
  readonly #entries = new Map<ProviderId, Entry<S>>();
  readonly #serials = new Map<string, Entry<S>[]>();
  readonly #open: Open<S>[] = [];
  readonly #openByKey = new Map<number, Open<S>>();
  readonly #closed = new Map<number, Closed<S>>();
  readonly costs = new CostTable();
  readonly constants: SchedulerConstants;
  /** Open members that are not overdue, the longest idle first. */
  readonly #idle = new IdleQueue<Entry<S>>();
  readonly #loading = new Set<Entry<S>>();
  #unmeasured = 0;
  #unproven = 0;
  /** The model's latest jobs, and how many of them ran on unproven providers. */
  #latestJobs = 0;
  #latestUnprovenJobs = 0;
  readonly #measuredSpeeds = new ThroughputHistogram();
  readonly #untriedEntries = new Set<Entry<S>>();
  /** Upper limit for providers without a verified answer; null: no provider is measured. */
  #speedCap: Pick<ThroughputEstimate, 'prefillTps' | 'decodeTps'> | null = null;
  #overdue = 0;
  #serving = 0;
  #slots = 0;
  #hardwareSlots = 0;
  #ready = 0;
  #refreshedAt = 0;
  /** Null: not computed yet. */
  #longest: { readonly tokens: number | null } | null = null;

  constructor(constants: SchedulerConstants = DEFAULT_CONSTANTS) {
    this.constants = constants;
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

  get mayTryUnproven(): boolean {
    return this.#latestUnprovenJobs < this.constants.unprovenShare * (this.#latestJobs + 1);
  }

  get hasOverdue(): boolean {
    return this.#overdue > 0;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Members that take jobs, now or soon. */
  get serving(): number {
    return this.#serving;
  }

  /** Slots of members that have the model in memory or load it. */
  get slots(): number {
    return this.#slots;
  }

  /** Slots of members with trust level `hardware`, among these. */
  get hardwareSlots(): number {
    return this.#hardwareSlots;
  }

  get loading(): number {
    return this.#loading.size;
  }

  get ready(): number {
    return this.#ready;
  }

  /** Members that take jobs and would have to load the model. */
  get cold(): number {
    return this.#serving - this.#ready - this.#loading.size;
  }

  /** Longest context among the serving members, in tokens; null: none. */
  get maxContextTokens(): number | null {
    if (this.#longest === null) {
      let tokens: number | null = null;
      for (const { group, contextTokens } of this.#entries.values()) {
        if (group !== null && isServing(group)) tokens = Math.max(tokens ?? 0, contextTokens);
      }
      this.#longest = { tokens };
    }
    return this.#longest.tokens;
  }

  member(providerId: ProviderId): PoolMember<S> | undefined {
    return this.#entries.get(providerId);
  }

  members(): Iterable<PoolMember<S>> {
    return this.#entries.values();
  }

  membersBySerial(serialNumber: string): readonly PoolMember<S>[] {
    return resolveClaimants(this.#serials.get(serialNumber) ?? []);
  }

  /** Adds or updates a provider. A provider's serial number never changes. `now` in milliseconds. */
  put(subject: S, facts: ProviderFacts, speed: ThroughputEstimate, contextLength: number, now: number, load: ModelLoad = READY_LOAD): void {
    const known = this.#entries.get(facts.providerId);
    const entry = known?.subject === subject ? known : this.#add(subject, facts, speed, contextLength, load);
    this.#uncount(entry);
    if (entry.contextTokens !== contextLength) this.#longest = null;
    if (facts.usedSlots > entry.facts.usedSlots) {
      entry.isOverdue = false;
      this.#idle.remove(entry);
    }
    entry.facts = facts;
    if (entry.speed !== speed) {
      entry.speed = speed;
      this.#countSpeed(entry);
    }
    entry.contextTokens = contextLength;
    entry.load = load;
    this.#assign(entry, now);
  }

  /** A provider was given a job. */
  jobPlaced(providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry === undefined) return;
    this.#latestJobs = this.#latestJobs * RECENT_JOBS_DECAY + 1;
    this.#latestUnprovenJobs = this.#latestUnprovenJobs * RECENT_JOBS_DECAY + (isUnprovenMember(entry) ? 1 : 0);
  }

  /** Advances time: loads progress, and idle members become overdue. `now` in milliseconds. */
  refresh(now: number): void {
    // After a clock set back, refreshing continues from the new time.
    const wasSetBack = now < this.#refreshedAt;
    if (!wasSetBack && now - this.#refreshedAt < REFRESH_MS) return;
    this.#refreshedAt = now;
    if (wasSetBack) this.#idle.clampTo(now);
    this.#updateSpeedCap(now);
    for (const entry of [...this.#loading]) this.#reassign(entry, now);
    // Copied first: a busy member moves to the end of the queue and must not be visited again.
    for (const entry of this.#idle.idleSince(now - this.constants.overdueMs)) {
      this.#idle.remove(entry);
      // A long job is work as well.
      entry.isOverdue = entry.facts.usedSlots === 0;
      this.#reassign(entry, now);
    }
  }

  /** Removes the provider, unless another subject has replaced it. */
  remove(subject: S, providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry !== undefined && entry.subject === subject) this.#delete(entry);
  }

  #reassign(entry: Entry<S>, now: number): void {
    this.#uncount(entry);
    this.#assign(entry, now);
  }

  /** Moves an entry into its group and counts it. */
  #assign(entry: Entry<S>, now: number): void {
    const group = this.#groupOf(entry, now);
    if (group !== entry.group) {
      this.#leaveGroup(entry);
      entry.position = group.members.push(entry) - 1;
      entry.group = group;
    }
    // An unavailable member is not overdue; failing members or those without the model are not asked for idleness alone.
    if (!group.open || entry.load.kind === 'cold' || entry.facts.recentFailures > 0) this.#idle.remove(entry);
    else if (!entry.isOverdue && !entry.isQueued) this.#idle.add(entry, now);
    if (isServing(group) !== entry.isCounted) this.#longest = null;
    entry.isCounted = isServing(group);
    if (!entry.isCounted) return;
    this.#serving++;
    if (entry.load.kind === 'cold') return;
    this.#slots += entry.facts.slots;
    if (entry.facts.trustLevel === 'hardware') this.#hardwareSlots += entry.facts.slots;
    if (entry.load.kind === 'ready') this.#ready++;
    else this.#loading.add(entry);
  }

  /** Call before any counted value of an entry changes. */
  #uncount(entry: Entry<S>): void {
    if (!entry.isCounted) return;
    this.#serving--;
    if (entry.load.kind === 'cold') return;
    this.#slots -= entry.facts.slots;
    if (entry.facts.trustLevel === 'hardware') this.#hardwareSlots -= entry.facts.slots;
    if (entry.load.kind === 'ready') this.#ready--;
    else this.#loading.delete(entry);
  }

  #add(subject: S, facts: ProviderFacts, speed: ThroughputEstimate, contextTokens: number, load: ModelLoad): Entry<S> {
    const older = this.#entries.get(facts.providerId);
    if (older !== undefined) this.#delete(older);
    const entry: Entry<S> = {
      subject,
      facts,
      speed,
      rates: 0,
      countedSpeed: null,
      contextTokens,
      load,
      isOverdue: false,
      isCounted: false,
      group: null,
      position: 0,
      idleSince: 0,
      isQueued: false,
      previous: null,
      next: null,
    };
    this.#entries.set(facts.providerId, entry);
    this.#countSpeed(entry);
    const same = this.#serials.get(facts.serialNumber);
    if (same === undefined) this.#serials.set(facts.serialNumber, [entry]);
    else same.push(entry);
    return entry;
  }

  #delete(entry: Entry<S>): void {
    this.#uncount(entry);
    this.#idle.remove(entry);
    this.#longest = null;
    this.#leaveGroup(entry);
    this.#uncountSpeed(entry);
    this.#entries.delete(entry.facts.providerId);
    const rest = (this.#serials.get(entry.facts.serialNumber) ?? []).filter((other) => other !== entry);
    if (rest.length === 0) this.#serials.delete(entry.facts.serialNumber);
    else this.#serials.set(entry.facts.serialNumber, rest);
  }

  /** Updates the speed statistics: tried members count for the quantile, untried ones are limited by it. */
  #countSpeed(entry: Entry<S>): void {
    this.#uncountSpeed(entry);
    if (isUntried(entry.speed)) this.#untriedEntries.add(entry);
    else entry.countedSpeed = this.#measuredSpeeds.add(entry.speed);
    entry.rates = throughputKey(this.#cappedSpeed(entry.speed));
  }

  #uncountSpeed(entry: Entry<S>): void {
    if (entry.countedSpeed !== null) this.#measuredSpeeds.remove(entry.countedSpeed);
    entry.countedSpeed = null;
    this.#untriedEntries.delete(entry);
  }

  /** The speed used for placement: an untried provider is at most as fast as the 90th percentile. */
  #cappedSpeed(speed: ThroughputEstimate): ThroughputEstimate {
    if (this.#speedCap === null || !isUntried(speed)) return speed;
    const { prefillTps, decodeTps } = this.#speedCap;
    return { ...speed, prefillTps: Math.min(speed.prefillTps, prefillTps), decodeTps: Math.min(speed.decodeTps, decodeTps) };
  }

  #updateSpeedCap(now: number): void {
    if (this.#untriedEntries.size === 0) return;
    const believed = this.#measuredSpeeds.quantile();
    const before = this.#speedCap;
    if (believed?.prefillTps === before?.prefillTps && believed?.decodeTps === before?.decodeTps) return;
    this.#speedCap = believed;
    for (const entry of this.#untriedEntries) {
      entry.rates = throughputKey(this.#cappedSpeed(entry.speed));
      this.#reassign(entry, now);
    }
  }

  #groupOf(entry: Entry<S>, now: number): Group<S> {
    const { facts, rates } = entry;
    const reason = unavailableReason(facts, now);
    if (reason === null) {
      const key = traitsKey(facts, rates, entry, now);
      let group = this.#openByKey.get(key);
      if (group === undefined) {
        const traits = traitsOf(facts, this.#cappedSpeed(entry.speed), entry, now);
        const costModel = costModelOf(traits, this.constants);
        group = { key, open: true, traits, costModel, members: [], position: this.#open.length };
        this.costs.set(group.position, group.costModel);
        this.#open.push(group);
        if (isUnmeasuredGroup(group)) this.#unmeasured++;
        if (isUnprovenGroup(group)) this.#unproven++;
        if (isOverdueGroup(group)) this.#overdue++;
        this.#openByKey.set(key, group);
      }
      return group;
    }
    const hasHardwareTrust = facts.trustLevel === 'hardware';
    const key = UNAVAILABLE_REASONS.indexOf(reason) * 2 + (hasHardwareTrust ? 1 : 0);
    let group = this.#closed.get(key);
    if (group === undefined) {
      group = { key, open: false, reason, hasHardwareTrust, members: [] };
      this.#closed.set(key, group);
    }
    return group;
  }

  /** Removes an entry from its group; the last entry takes its position. */
  #leaveGroup(entry: Entry<S>): void {
    const { group } = entry;
    if (group === null) return;
    const last = group.members.pop();
    if (last !== undefined && last !== entry) {
      group.members[entry.position] = last;
      last.position = entry.position;
    }
    if (group.members.length === 0) this.#closeGroup(group);
    entry.group = null;
  }

  #closeGroup(group: Group<S>): void {
    if (!group.open) {
      this.#closed.delete(group.key);
      return;
    }
    this.#openByKey.delete(group.key);
    if (isUnmeasuredGroup(group)) this.#unmeasured--;
    if (isUnprovenGroup(group)) this.#unproven--;
    if (isOverdueGroup(group)) this.#overdue--;
    const last = this.#open.pop();
    if (last === undefined || last === group) return;
    this.#open[group.position] = last;
    last.position = group.position;
    this.costs.set(last.position, last.costModel);
  }
}

/** Resolution of time, in milliseconds. */
const REFRESH_MS = 250;

/** Decay per job: the share covers about the last hundred jobs. */
const RECENT_JOBS_DECAY = 0.99;

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

/** Whether the group's providers wait to be measured. Failing providers wait until they recover. */
export function isUnmeasuredGroup<S>({ traits }: OpenGroup<S>): boolean {
  return !traits.isMeasured && traits.failures === 0 && !traits.isCold;
}

/** Whether neither a verified answer nor a manufacturer's certificate chain proves the group's providers. */
export function isUnprovenGroup<S>({ traits }: OpenGroup<S>): boolean {
  return traits.isUntried && !traits.hasHardwareTrust;
}

function isUnprovenMember<S>({ facts, speed }: Pick<PoolMember<S>, 'facts' | 'speed'>): boolean {
  return isUntried(speed) && facts.trustLevel !== 'hardware';
}

/** Whether the group's providers were idle for long while eligible for work. */
export function isOverdueGroup<S>({ traits }: OpenGroup<S>): boolean {
  return traits.isOverdue && traits.failures === 0 && !traits.isCold;
}

function isServing<S>(group: Group<S>): boolean {
  return group.open || isTransient(group.reason);
}
