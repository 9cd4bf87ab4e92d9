/**
 * `ProviderPool` holds all providers of one model, grouped by equal cost, so that placement scans groups instead of providers.
 *
 * Cold: must load the model first. Serving: takes jobs now or soon. Untried: without a verified answer. Overdue: idle for long.
 */
import type { ProviderId } from '@inference/protocol';
import type { CostTable } from '../cost/cost-table.js';
import { isUntried, type ThroughputEstimate, throughputKey } from '../cost/job-cost.js';
import { type ModelLoad, READY_LOAD } from '../cost/model-load.js';
import { type CountedThroughput, ThroughputHistogram } from '../cost/throughput-histogram.js';
import { type OfferTraits, type ProviderFacts, resolveClaimants } from '../eligibility.js';
import { DEFAULT_CONSTANTS, type SchedulerConstants } from '../scheduler-constants.js';
import { type IdleNode, IdleQueue } from './idle-queue.js';
import { type ClosedGroup, type GroupedMember, isServing, type OpenGroup, type PoolMember, ProviderGroups } from './provider-groups.js';

/** Readonly view of a pool, the input of a placement. */
export interface PoolView<S> {
  readonly open: readonly OpenGroup<S>[];
  /** Row `i` has the costs of `open[i]`. */
  readonly costs: CostTable;
  readonly constants: SchedulerConstants;
  /** Whether any open group is unmeasured; see {@link isUnmeasuredGroup}. */
  readonly hasUnmeasured: boolean;
  /** Whether any open group is unproven; see {@link isUnprovenGroup}. */
  readonly hasUnproven: boolean;
  /** Whether unproven providers got less than `unprovenShare` of the model's latest jobs. */
  readonly mayTryUnproven: boolean;
  /** Whether any open group is overdue; see {@link isOverdueGroup}. */
  readonly hasOverdue: boolean;
  /** Slots (used or free) of serving members that have the model in memory or are loading it. */
  readonly slots: number;
  /** Number of serving members that are loading the model. */
  readonly loading: number;
  /** Number of serving members that have the model in memory. */
  readonly ready: number;
  readonly closed: Iterable<ClosedGroup<S>>;
  member(providerId: ProviderId): PoolMember<S> | undefined;
  members(): Iterable<PoolMember<S>>;
  membersBySerial(serialNumber: string): readonly PoolMember<S>[];
}

interface Entry<S> extends GroupedMember<S>, IdleNode {
  readonly subject: S;
  facts: ProviderFacts;
  speed: ThroughputEstimate;
  placementSpeed: ThroughputEstimate;
  speedKey: number;
  /** The entry's place in the histogram of measured speeds; null: no verified answer yet. */
  countedSpeed: CountedThroughput | null;
  contextTokens: number;
  traits: OfferTraits;
  load: ModelLoad;
  isOverdue: boolean;
  /** Included in the pool's counts of serving members. */
  isCounted: boolean;
}

export class ProviderPool<S> implements PoolView<S> {
  readonly #entries = new Map<ProviderId, Entry<S>>();
  readonly #serials = new Map<string, Entry<S>[]>();
  readonly #groups: ProviderGroups<S>;
  readonly constants: SchedulerConstants;
  /** Members that become overdue unless they get a job: available, without failures, with the model. */
  readonly #idle = new IdleQueue<Entry<S>>();
  readonly #loading = new Set<Entry<S>>();
  /** Exponentially decayed counts of the model's jobs, and of its jobs on unproven providers. */
  #latestJobs = 0;
  #latestUnprovenJobs = 0;
  readonly #measuredSpeeds = new ThroughputHistogram();
  readonly #untriedEntries = new Set<Entry<S>>();
  /** Maximum assumed speed of untried providers; null: no provider has a verified answer. */
  #speedCap: Pick<ThroughputEstimate, 'prefillTps' | 'decodeTps'> | null = null;
  #serving = 0;
  #slots = 0;
  #hardwareSlots = 0;
  #ready = 0;
  #refreshedAt = 0;
  /** Cached `maxContextTokens`; null: not computed. */
  #longest: { readonly tokens: number | null } | null = null;

  constructor(constants: SchedulerConstants = DEFAULT_CONSTANTS) {
    this.constants = constants;
    this.#groups = new ProviderGroups(constants);
  }

  get open(): readonly OpenGroup<S>[] {
    return this.#groups.open;
  }

  get costs(): CostTable {
    return this.#groups.costs;
  }

  get closed(): Iterable<ClosedGroup<S>> {
    return this.#groups.closed;
  }

  get hasUnmeasured(): boolean {
    return this.#groups.hasUnmeasured;
  }

  get hasUnproven(): boolean {
    return this.#groups.hasUnproven;
  }

  get mayTryUnproven(): boolean {
    return this.#latestUnprovenJobs < this.constants.unprovenShare * (this.#latestJobs + 1);
  }

  get hasOverdue(): boolean {
    return this.#groups.hasOverdue;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Number of members that take jobs now, or after a transient reason passes. */
  get serving(): number {
    return this.#serving;
  }

  /** Slots of serving members that have the model in memory or are loading it. */
  get slots(): number {
    return this.#slots;
  }

  /** The `slots` of members with trust level `hardware`. */
  get hardwareSlots(): number {
    return this.#hardwareSlots;
  }

  get loading(): number {
    return this.#loading.size;
  }

  get ready(): number {
    return this.#ready;
  }

  /** Number of serving members that must load the model first. */
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

  /** Adds or updates a provider, whose serial number must not change. `now` in milliseconds. */
  put(
    subject: S,
    facts: ProviderFacts,
    speed: ThroughputEstimate,
    contextLength: number,
    now: number,
    load: ModelLoad = READY_LOAD,
    traits: OfferTraits = NO_TRAITS,
  ): void {
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
    entry.traits = traits;
    entry.load = load;
    this.#assign(entry, now);
  }

  /** Counts a placed job, for `mayTryUnproven`. */
  jobPlaced(providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry === undefined) return;
    this.#latestJobs = this.#latestJobs * RECENT_JOBS_DECAY + 1;
    this.#latestUnprovenJobs = this.#latestUnprovenJobs * RECENT_JOBS_DECAY + (isUnprovenMember(entry) ? 1 : 0);
  }

  /** Advances the pool to `now`, in milliseconds: updates remaining load times and marks long-idle members as overdue. */
  refresh(now: number): void {
    // If the clock was set back, refresh at once and continue from the new time.
    const wasSetBack = now < this.#refreshedAt;
    if (!wasSetBack && now - this.#refreshedAt < REFRESH_MS) return;
    this.#refreshedAt = now;
    if (wasSetBack) this.#idle.clampTo(now);
    this.#updateSpeedCap(now);
    for (const entry of [...this.#loading]) this.#reassign(entry, now);
    // `idleSince` copies, because #reassign puts a busy member back at the end of the queue.
    for (const entry of this.#idle.idleSince(now - this.constants.overdueMs)) {
      this.#idle.remove(entry);
      // A provider in a long job is not idle.
      entry.isOverdue = entry.facts.usedSlots === 0;
      this.#reassign(entry, now);
    }
  }

  remove(subject: S, providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry !== undefined && entry.subject === subject) this.#delete(entry);
  }

  #reassign(entry: Entry<S>, now: number): void {
    this.#uncount(entry);
    this.#assign(entry, now);
  }

  #assign(entry: Entry<S>, now: number): void {
    const group = this.#groups.place(entry, now);
    // Only available members with the model and without failures become overdue.
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

  /** Subtracts an entry from the counts. Call before any counted value of the entry changes. */
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
      placementSpeed: speed,
      speedKey: 0,
      countedSpeed: null,
      contextTokens,
      traits: NO_TRAITS,
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
    this.#groups.leave(entry);
    this.#uncountSpeed(entry);
    this.#entries.delete(entry.facts.providerId);
    const rest = (this.#serials.get(entry.facts.serialNumber) ?? []).filter((other) => other !== entry);
    if (rest.length === 0) this.#serials.delete(entry.facts.serialNumber);
    else this.#serials.set(entry.facts.serialNumber, rest);
  }

  /** Updates the histogram of measured speeds, whose quantile caps the speed of untried members. */
  #countSpeed(entry: Entry<S>): void {
    this.#uncountSpeed(entry);
    if (isUntried(entry.speed)) this.#untriedEntries.add(entry);
    else entry.countedSpeed = this.#measuredSpeeds.add(entry.speed);
    this.#setPlacementSpeed(entry);
  }

  #uncountSpeed(entry: Entry<S>): void {
    if (entry.countedSpeed !== null) this.#measuredSpeeds.remove(entry.countedSpeed);
    entry.countedSpeed = null;
    this.#untriedEntries.delete(entry);
  }

  /** Caps the placement speed of an untried provider at the 90th percentile of measured speeds. */
  #setPlacementSpeed(entry: Entry<S>): void {
    const { speed } = entry;
    const cap = this.#speedCap;
    const isCapped = cap !== null && isUntried(speed);
    entry.placementSpeed = isCapped
      ? { ...speed, prefillTps: Math.min(speed.prefillTps, cap.prefillTps), decodeTps: Math.min(speed.decodeTps, cap.decodeTps) }
      : speed;
    entry.speedKey = throughputKey(entry.placementSpeed);
  }

  #updateSpeedCap(now: number): void {
    if (this.#untriedEntries.size === 0) return;
    const cap = this.#measuredSpeeds.quantile();
    const before = this.#speedCap;
    if (cap?.prefillTps === before?.prefillTps && cap?.decodeTps === before?.decodeTps) return;
    this.#speedCap = cap;
    for (const entry of this.#untriedEntries) {
      this.#setPlacementSpeed(entry);
      this.#reassign(entry, now);
    }
  }
}

const NO_TRAITS: OfferTraits = { quantization: '', maxImages: 0 };

/** Minimum time between refreshes, in milliseconds. */
const REFRESH_MS = 250;

/** Decay per job, so that the counts cover about the latest hundred jobs. */
const RECENT_JOBS_DECAY = 0.99;

function isUnprovenMember<S>({ facts, speed }: Pick<PoolMember<S>, 'facts' | 'speed'>): boolean {
  return isUntried(speed) && facts.trustLevel !== 'hardware';
}
